"""``jaxscope view`` without a name opens what goes on, also before it has come to its import of jax."""

from __future__ import annotations

import os

import pytest
from handwritten_runs import Log

from jaxscope.cli import view
from jaxscope.log import store


@pytest.fixture
def newest(tmp_path, monkeypatch):
    """A run of which nothing is recorded, behind one that is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "runs_home", lambda: tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    old, new = (store.create(tmp_path / "runs" / name, name=name) for name in ("a-old", "b-new"))
    Log(old).end()
    return new


def test_a_program_that_goes_on_is_what_one_waits_for(newest):
    newest.heartbeat.touch()
    assert view.begun().path == newest.path


def test_one_that_is_over_or_that_nobody_watches_is_not(newest):
    assert view.begun() is None
    newest.heartbeat.touch()
    os.utime(newest.heartbeat, (0, 0))
    assert view.begun() is None


def test_what_has_recorded_is_the_latest_anyway(newest):
    newest.heartbeat.touch()
    Log(newest)
    assert view.begun() is None
