"""Check a recorded run (``jaxscope check``, pytest marks): whether anything is compiled after training step
N, limits on compilations and programs, and a comparison with a baseline file (saved figures of an earlier
run).

The module ``plan`` runs all checks that the options and pyproject.toml select.
"""
