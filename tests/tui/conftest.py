"""Runs as the screens' tests need them."""

from __future__ import annotations

import pytest
import screen_runs
import textual.app
import textual.pilot
from screens import idle

from jaxscope.model import sources
from jaxscope.tui import feed

TICK_S = 0.03  # ten times a second is for people; a test waits for what a tick brings


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Let the app follow its run closely, and Textual's pilot wait for events instead of time."""
    monkeypatch.setattr(feed, "PERIOD_S", TICK_S)
    monkeypatch.setattr(feed, "BREAK_S", 0.0)
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", idle)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """``made(name)``: the run of that name; where it has a source, in the directory of that."""

    def make(name: str):
        directory = {**screen_runs.ALL, **screen_runs.ELSEWHERE}[name](tmp_path / "run")
        source = directory.path / "src"
        monkeypatch.chdir(source if source.exists() else tmp_path)
        monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
        sources.text.cache_clear()
        return directory

    return make


@pytest.fixture(params=list(screen_runs.ALL))
def every_run(request, made):
    """(name, directory) of each."""
    return request.param, made(request.param)


@pytest.fixture
def typical(made):
    return made("typical")
