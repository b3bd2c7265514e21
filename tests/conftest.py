"""Fixtures that record real programs in processes of their own; the mark of tests that start processes."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import itertools
import os
import pickle
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import processes
import pytest
import recordings
from hypothesis import settings

# Under nohup, or in the background of a script, these are ignored, and whatever is started inherits that.
for _name in ("SIGHUP", "SIGINT", "SIGQUIT"):
    if signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(
            getattr(signal, _name), signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL
        )

# Machines are shared: no test asserts on a clock.
settings.register_profile("suite", deadline=None, max_examples=50)
settings.load_profile("suite")

processes.watch()

# The tests themselves are a million objects that stay. With Python's thresholds, a tenth of the fast tests' time goes
# into looking for garbage among them.
gc.set_threshold(5_000)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what has the environment of a child process among its fixtures; others have the mark in their text."""
    if "clean_env" in getattr(item, "fixturenames", ()):
        item.add_marker("subprocess")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _without_processes(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _without_processes(item))


def _without_processes(item: pytest.Item) -> Iterator[None]:
    """Fail a test that starts a process and is not marked."""
    if item.get_closest_marker("subprocess") is not None:
        return (yield)
    with processes.started() as started:
        result = yield
    assert not started, f"this test needs the mark subprocess: it has started {started[0]}"
    return result


@pytest.fixture(scope="session")
def clean_env() -> dict[str, str]:
    return recordings.environment()


@pytest.fixture
def record(tmp_path: Path, clean_env: dict[str, str]) -> Callable[..., recordings.Recorded]:
    """``record(code)`` or ``record(path)``: run it recorded by ``jaxscope.record`` in a new process."""
    numbers = itertools.count(1)

    def go(program: str | Path, *args: str, **options: Any) -> recordings.Recorded:
        return recordings.record(tmp_path, next(numbers), program, *args, clean_env=clean_env, **options)

    return go


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], Any]], Any]:
    """``made_once(name, make)``: what ``make(folder)`` returns, made by the first worker that needs it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def get(name: str, make: Callable[[Path], Any]) -> Any:
        folder, made = base / f"once-{name}", base / f"once-{name}.pickle"
        with (base / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of one that failed
                folder.mkdir()
                made.write_bytes(pickle.dumps(make(folder)))
        return pickle.loads(made.read_bytes())

    return get


@pytest.fixture(scope="session")
def record_module(
    made_once: Callable[..., Any], clean_env: dict[str, str]
) -> Callable[..., recordings.Recorded]:
    """The same as ``record``, for tests that look at one recording: a program is recorded once."""

    def go(program: str | Path, *args: str, **options: Any) -> recordings.Recorded:
        name = hashlib.sha256(repr((program, args, sorted(options.items()))).encode()).hexdigest()[:16]
        return made_once(
            name, lambda folder: recordings.record(folder, 1, program, *args, clean_env=clean_env, **options)
        )

    return go


@pytest.fixture(autouse=True)
def _files_are_read_again():
    """Many tests write their own ``train.py`` and change to its directory: forget the text of the one before."""
    read = sys.modules.get("jaxscope.model.sources")
    if read is not None:
        read.text.cache_clear()
