"""Lets these tests import the runs written by hand; runs as the screens' tests need them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "log"))
sys.path.insert(0, str(Path(__file__).parent))

import runs_to_see


@pytest.fixture(params=list(runs_to_see.ALL))
def every_run(request, tmp_path, monkeypatch):
    """(name, directory) of each."""
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    return request.param, runs_to_see.ALL[request.param](tmp_path / "run")


@pytest.fixture
def typical(tmp_path):
    return runs_to_see.typical(tmp_path / "run")
