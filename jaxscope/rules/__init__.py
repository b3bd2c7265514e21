"""The rules: each reads a recorded run and returns findings, which are problems worth a change of the
program. A finding has evidence, and a fix that a test tries.
"""
