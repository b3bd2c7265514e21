"""Errors of ``--target`` before anything runs."""

import argparse

import pytest

from jaxscope.cli import targeting
from jaxscope.launch.program_events import Ended


def asked(*targets, dry_run=False, quiet=False):
    return targeting.of_options(
        argparse.Namespace(target=list(targets), dry_run=dry_run, quiet=quiet, detach=False, tui=False)
    )


@pytest.fixture(autouse=True)
def with_compilers(monkeypatch):
    monkeypatch.setattr(targeting, "installed", lambda platform, name: None)


def test_more_devices_than_a_cpu_has_threads_for_are_warned_of(capsys):
    assert [[t.name for t in group] for group in asked("v5p:8x8x8", "v5e:4x4")] == [
        ["v5p:8x8x8"],
        ["v5e:4x4"],
    ]
    said = capsys.readouterr().err
    assert "a step with several collectives on 512 CPU devices may hang" in said and "--dry-run" in said


@pytest.mark.parametrize(
    "name, signal, quiet, told",
    [
        ("v5p:8x8x8", 6, False, True),
        ("v5p:8x8x8", 6, True, False),
        ("v5p:8x8x8", 15, False, False),
        ("v5p:8x8x8", None, False, False),
        ("v5e:16x16", 6, False, False),
    ],
)
def test_after_the_abort_the_way_without_it_is_reported_once_more(capsys, name, signal, quiet, told):
    (targets,) = asked(name, quiet=True)
    ended = Ended(1, None if signal else 0, signal, 60.0)
    targeting.aborted(targets, ended, argparse.Namespace(quiet=quiet))
    said = capsys.readouterr().err
    assert (
        "the program was aborted, probably by XLA" in said
        and "with --dry-run the script ends before its step runs" in said
    ) is told
    assert told or not said


@pytest.mark.parametrize(
    "name, more", [("v5e:16x16", {}), ("v5p:8x8x8", {"dry_run": True}), ("v5p:8x8x8", {"quiet": True})]
)
def test_where_it_cannot_happen_or_nobody_wants_to_hear_nothing_is_reported(capsys, name, more):
    asked(name, **more)
    assert capsys.readouterr().err == ""
