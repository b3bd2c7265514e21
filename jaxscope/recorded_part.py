"""Read what this process has recorded of one block or one test, while the recording continues.

The modules that record know the numbers of the calls that belong to the block. The modules that read a run
read these calls from the log on disk.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxscope.capture.session import Session
    from jaxscope.capture.steps.scope import RecordingScope
    from jaxscope.model.load import Tail
    from jaxscope.recorded_run import Opened
    from jaxscope.schema.steps import Step

# Names of the callbacks that record compilations. If one of them fails, it is unknown what was compiled.
NEEDED = ("phase_durations", "miss_event", "trace_event")

_tails: weakref.WeakKeyDictionary[Any, Tail] = weakref.WeakKeyDictionary()


def read(session: Session, block: RecordingScope) -> tuple[Opened, dict[str, Step]]:
    """Return (everything that ``session``, the active recording, has recorded so far, a dict: id of a call
    in ``block`` -> its training step).

    The dict has each call that missed JAX's fast path. The first step is the first in ``block``. A step is
    None if nothing counts steps, and an ``Either`` if two numbers are possible. The dict is empty if this
    process has no log yet.
    """
    from jaxscope.capture.calls import functions
    from jaxscope.model.steps import within_call

    run = whole(session)
    run.defined = functions.is_defined
    own_processes = [p for p in run.processes.values() if p.pid == os.getpid()]
    if not own_processes:
        return run, {}
    process = max(own_processes, key=lambda p: p.first_ns)

    def inside(call: int, function: str) -> bool:
        c = run.compilation(process, call)
        return c is not None and within_call(run, c, function)

    return run, {f"{process.id}.{call}": step for call, step in block.steps(inside).items()}


def whole(session: Session) -> Opened:
    """Return everything recorded so far in ``session``. Each call adds the new events of the log to the same
    object, and returns it."""
    from jaxscope.model.load import Tail
    from jaxscope.recorded_run import Opened

    tail = _tails.get(session)
    if tail is None:
        tail = _tails[session] = Tail(session.run, Opened())
    session.tracker.flush()
    session.probe.phases.memory.wait()
    tail.poll()
    assert isinstance(tail.run, Opened)
    return tail.run


def alone(session: Session, block: RecordingScope) -> Opened:
    """Return a run with only the calls of this process in ``block``, a part of the recording ``session``, and
    the events that belong to no call. Steps, counts of calls and snapshots of live arrays are left out."""
    from jaxscope.log import reader
    from jaxscope.model.programs import Reader
    from jaxscope.recorded_run import Opened
    from jaxscope.schema import events as ev

    session.probe.phases.memory.wait()
    calls = set(block.steps())
    run = Opened()
    run.texts_of = Reader(session.run, run.overheard).texts
    counted = (ev.Called, ev.MissesCounted, ev.Step, ev.Watched, ev.ArraysSeen, ev.CaptureChanged)
    for log, event in reader.Reader(session.run).entries():
        call = getattr(event, "call", None)
        if event.pid == os.getpid() and not isinstance(event, counted) and (call is None or call in calls):
            run.apply(event, log)
    return run


def failed() -> list[str]:
    """Return the callbacks in ``NEEDED`` that have failed so far. JAX calls these callbacks when it traces or
    compiles, so after a failure it is unknown what was compiled."""
    from jaxscope.capture import shield

    return [name for name in NEEDED if not shield.works(name)]


def why_unreliable(session: Session, before: Sequence[str]) -> str | None:
    """Return why the recording ``session`` may lack compilations of a block, as text; None if it is complete.
    ``before`` is the result of ``failed()`` when the block began. A callback in ``before`` counts only if it
    is still switched off."""
    from jaxscope.capture import shield

    if session.writer.stopped == "closed":
        return "the recording ended before this block or test"
    if session.writer.stopped is not None:
        return f"the recording stopped ({session.writer.stopped})"
    lost = [n for n in NEEDED if shield.is_off(n) or (not shield.works(n) and n not in before)]
    return f"{', '.join(lost)} is not available" if lost else None
