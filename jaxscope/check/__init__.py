"""Check a recorded run (``jaxscope check``, pytest marks): no recompiles after step N, limits on compilations
and programs, and a comparison with a baseline file.

The module ``plan`` runs all checks that the options and pyproject.toml select.
"""
