"""The thread that waits for the work of another: whose work it is, where no line of the user's is on the
stack.

``Thread(target=jnp.ones)`` and ``pool.submit(jnp.ones, ...)`` run a library's function in a thread of their
own. The line that joins that thread, or wants that result, is found in another thread's stack by what it
waits for.
"""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType
from typing import Any

from jaxscope.capture import frames
from jaxscope.jax_internals import frame_reading
from jaxscope.schema.keys import Frame

_WAITING = ("threading", "concurrent")  # packages whose functions wait for a thread or a result
_NAMES = ("self", "f", "fut", "fs", "pending")  # the locals of theirs that hold what they wait for
_MOST = 10_000  # results of one call


def user_frames(frame: FrameType | None) -> list[Frame]:
    """The user's lines, innermost first, of the thread that waits for what runs at ``frame``; empty: none
    does."""
    work = _work(frame)
    if not work:
        return []
    here = threading.get_ident()
    for thread, top in tops().items():
        if thread != here and any(_waits(f, work) for f in _waiting(top)):
            return frames.user_frames(top)
    return []


def tops() -> dict[int, FrameType]:
    """The innermost frame of each thread.

    Python 3.11 makes frame objects here while it holds the lock of all threads' states. Where that sets the
    collector off, and the garbage has a ``threading.local``, its end wants the same lock: a deadlock.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _work(frame: FrameType | None) -> list[Any]:
    """The Thread that runs at ``frame``, and the Future whose result is computed there."""
    found: list[Any] = []
    for f in frames.walk(frame):
        name = f.f_code.co_qualname
        if name == "_WorkItem.run" and frames.module_of(f) == "concurrent.futures.thread":
            found += [vars(item)["future"] for item in frame_reading.read(f, ("self",)).values()]
        elif name == "Thread._bootstrap" and frames.module_of(f) == "threading":
            found += frame_reading.read(f, ("self",)).values()
    return found


def _waiting(top: FrameType) -> list[FrameType]:
    """The innermost frames, those of Python's own functions that wait."""
    found = []
    for f in frames.walk(top):
        if frames.root(frames.module_of(f)) not in _WAITING:
            break
        found.append(f)
    return found


def _waits(frame: FrameType, work: list[Any]) -> bool:
    for value in frame_reading.read(frame, _NAMES).values():
        held = list(value)[:_MOST] if type(value) in (list, set, tuple) else [value]
        if any(h is w for h in held for w in work):
            return True
    return False
