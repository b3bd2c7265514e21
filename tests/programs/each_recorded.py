"""Runs ``step.py`` of each directory it is given, each recorded for itself, in one process."""

import os
import runpy
import sys

import jax

import jaxscope

for folder in sys.argv[1:]:
    os.chdir(folder)
    jax.clear_caches()
    with jaxscope.record("recorded"):
        runpy.run_path(os.path.abspath("step.py"), run_name="__main__")  # noqa: PTH100
