"""Programs compiled for eight devices on the JAX that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from hlo_cases import TESTS


@pytest.fixture(scope="session")
def partitioned(tmp_path_factory):
    """The folder that tests/programs/partitioned.py wrote, once for all workers of a run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "partitioned"
    done = folder / "programs.json"
    try:
        folder.mkdir()
    except FileExistsError:  # another worker compiles them
        for _ in range(2000):
            if done.exists():
                return folder
            time.sleep(0.1)
        raise
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "XLA_FLAGS"))}
    env["JAX_PLATFORMS"] = "cpu"
    program = [sys.executable, str(TESTS / "programs" / "partitioned.py"), str(folder)]
    ended = subprocess.run(program, env=env, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return folder
