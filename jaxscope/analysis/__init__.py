"""Pure functions that explain recorded facts and compilers' texts; they import no jax, and write no log and
no terminal.
"""
