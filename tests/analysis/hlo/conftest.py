"""Programs compiled for eight devices on the JAX that is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hlo_cases import TESTS


@pytest.fixture(scope="session")
def partitioned(made_once, clean_env):
    """The folder that tests/programs/partitioned.py wrote."""

    def make(folder):
        program = [sys.executable, str(TESTS / "programs" / "partitioned.py"), str(folder)]
        ended = subprocess.run(program, env=clean_env, capture_output=True, text=True, timeout=240)
        assert ended.returncode == 0, ended.stderr[-4000:]
        return folder

    return made_once("partitioned", make)
