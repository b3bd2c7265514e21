"""Gives these tests a place of their own to run in, and the command line within their own process."""

import pytest

from jaxscope import cli


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a directory for runs; the current directory and the environment belong to the test alone."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home" / "runs"


@pytest.fixture
def jaxscope(capsys):
    """``jaxscope(*words)``: the exit code, stdout and stderr of that command, run in this process."""

    def call(*words):
        code = cli.command([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def check(jaxscope):
    """``jaxscope check``: its exit code, and stdout and stderr in one line each."""

    def call(*words):
        code, out, err = jaxscope("check", *words)
        return code, " ".join(out.split()), " ".join(err.split())

    return call
