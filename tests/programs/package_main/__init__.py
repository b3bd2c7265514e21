"""A package that is run with `python -m package_main [steps]`."""
