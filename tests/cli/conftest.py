"""Lets these tests import the runs written by hand, and gives them a place of their own to run in."""

import sys
from pathlib import Path

import pytest

from jaxscope import cli

sys.path.insert(0, str(Path(__file__).parents[1] / "log"))
sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where runs are kept; the current directory and the environment are nobody else's."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home" / "runs"


@pytest.fixture
def check(capsys):
    """``jaxscope check``: its exit code, its text in one line, and stderr."""

    def call(*argv):
        code = cli.command(["check", *argv])
        out, err = capsys.readouterr()
        return code, " ".join(out.split()), err

    return call
