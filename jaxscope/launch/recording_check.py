"""Find out whether a program was recorded, and explain why if nothing was recorded.

Two kinds of files in the run directory are read: the logs, and files with words such as ``jax`` (jax was
imported), which jaxscope's start-up file (``boot/sitecustomize.py``) writes in each Python process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jaxscope.launch.command import ignores_pythonpath
from jaxscope.launch.program_events import Ended
from jaxscope.log import files
from jaxscope.log.reader import MAX_LINE_BYTES, decode
from jaxscope.log.store import RunDir
from jaxscope.schema import events

MAX_MARKS = 1 << 16  # bytes of one file with such words
_SOMETHING = (events.Missed, events.Traced, events.Lowered, events.Compiled)


class Evidence(NamedTuple):
    """Facts about a recording, from which ``explain`` and the command ``run`` tell why nothing was recorded.

    Attributes:
      booted: whether jaxscope's start-up file (``sitecustomize.py``) ran in the program itself.
      marks: the words that the start-up file wrote in the program or in a child process: ``boot`` (the file
        ran), ``jax`` (jax was imported), ``no jaxscope`` (jaxscope is not installed there), ``failed`` (an
        exception prevented the recording).
      started: whether a process began recording.
      something: whether something was recorded: a call that missed a cache, a trace, lowering or compilation.
      died: the last uncaught exception that ended a recorded process; None: none was found. The search ends
        when ``something`` is found.
    """

    booted: bool
    marks: frozenset[str]
    started: bool
    something: bool
    died: events.Died | None = None


def evidence_of(run: RunDir, program: int) -> Evidence:
    """Return the facts about the recording in the run directory ``run``. ``program`` is the process id of the
    user's program."""
    marks: set[str] = set()
    try:
        for name in files.names(run.path / "boot", within=run.path):
            mark = files.read(run.path / "boot" / name, MAX_MARKS, within=run.path)
            marks.update(mark.decode("ascii", "replace").splitlines())
    except OSError:
        pass
    started = something = False
    died: events.Died | None = None
    for log in run.logs():
        for event in _events(log):
            started = started or isinstance(event, events.RunStarted)
            died = event if isinstance(event, events.Died) else died
            something = something or isinstance(event, _SOMETHING)
            if something:
                break
    return Evidence((run.path / "boot" / str(program)).exists(), frozenset(marks), started, something, died)


def explain(evidence: Evidence, ended: Ended) -> list[str]:
    """Return lines for the user about why nothing was recorded, and what to do. Empty if something was
    recorded, or if the start-up file failed and has already printed the reason.

    Args:
      evidence: the result of ``evidence_of``.
      ended: how the program ended.
    """
    nothing = "nothing was recorded: "
    failed = ended.exit_code != 0
    if evidence.something:
        return []
    if evidence.started:
        if failed:
            return [f"the program ended with {ended.how} before its first compilation"]
        return ["the program imported jax but compiled nothing, so there is nothing to report"]
    if not evidence.booted and "jax" not in evidence.marks:
        if flag := ignores_pythonpath():
            return [
                f"{nothing}python was started with {flag}, which keeps Python from loading jaxscope",
                f"leave out {flag}, or record from inside the program: with jaxscope.record(): ...",
            ]
        if ended.signal is not None:
            return [f"{nothing}the program was ended by {ended.how} before its first line ran"]
        return [
            f"{nothing}the program's Python did not load jaxscope's start-up file sitecustomize.py"
            " (is PYTHONPATH changed?)",
            "record from inside the program instead: with jaxscope.record(): ...",
        ]
    if "jax" not in evidence.marks:
        if failed:
            return [f"{nothing}the program ended with {ended.how} before it imported jax"]
        return [
            f"{nothing}the program did not import jax",
            "if it starts another Python with -I, -E or -S, record in that one: with jaxscope.record(): ...",
        ]
    if "failed" in evidence.marks:
        return []
    if "no jaxscope" in evidence.marks:
        return [
            f"{nothing}jaxscope is not installed in the environment whose Python imported jax",
            "install it there: python -m pip install jaxscope",
        ]
    if failed:
        return [f"{nothing}the program ended with {ended.how} while it imported jax"]
    return [
        f"{nothing}the program imported jax, but no recording began",
        "see what is missing: jaxscope doctor",
    ]


def _events(log: Path) -> Iterator[object]:
    """Yield the events in the log file ``log`` of a recording. Yield none if the file cannot be read."""
    # Line by line, because a log may have a gigabyte and the caller stops near the beginning.
    try:
        with files.open_regular(log, within=log.parent.parent) as f:
            while line := f.readline(MAX_LINE_BYTES):
                yield decode(line)
    except OSError:
        return
