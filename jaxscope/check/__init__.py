"""Check a recorded run: no recompiles after step N, limits, a baseline file, pytest marks.

``plan`` runs all checks that options and configuration select.
"""
