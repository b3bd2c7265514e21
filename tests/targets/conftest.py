"""Keeps the compilers of absent machines from running at once."""

import fcntl
import os

import pytest


@pytest.fixture
def one_compiler(tmp_path_factory):
    """While a test has this, no other worker's test has it: a compiler takes a gigabyte and every core."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (base / "compiler.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
