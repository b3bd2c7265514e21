"""Find the user's line that waits for another thread, if this thread runs only code of libraries.

``Thread(target=jnp.ones)`` and ``pool.submit(jnp.ones, ...)`` run a library's function in a thread of its
own. A line of the user joins this thread or waits for its result. To find the line, the stacks of all other
threads are searched for the Thread or Future object.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from types import FrameType
from typing import Any

from jaxscope.capture import frames
from jaxscope.jax_internals import frame_reading
from jaxscope.schema.keys import Frame

_WAITING = ("threading", "concurrent")  # packages whose functions wait for a thread or a result
_NAMES = ("self", "f", "fut", "fs", "pending")  # variables of these functions with the Thread or the Future
_MOST = 10_000  # Futures that one function waits for


def user_frames(frame: FrameType | None) -> list[Frame]:
    """Return the user's lines, innermost first, of a thread that waits for the thread in which ``frame``
    runs. Return an empty list if no thread waits for it, or if ``frame`` is None."""
    work = _work(frame)
    if not work:
        return []
    here = threading.get_ident()
    for thread, top in tops().items():
        if thread != here and any(_waits(f, work) for f in _waiting(top)):
            return frames.user_frames(top)
    return []


def tops() -> dict[int, FrameType]:
    """Return a dict for all threads of this process: identifier of the thread -> its innermost frame. Garbage
    collection is disabled during this call."""
    # Python 3.11 creates frame objects while it holds the lock of all thread states. A garbage collection at
    # this time could free a ``threading.local``, which needs the same lock, and would deadlock.
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _work(frame: FrameType | None) -> list[Any]:
    """Return the objects by which another thread can wait for the end of the code at ``frame``: the Thread
    that runs it, and the Future of its result. Return an empty list in the main thread."""
    work: list[Any] = []
    for f in frames.walk(frame):
        name = f.f_code.co_qualname
        if name == "_WorkItem.run" and frames.module_of(f) == "concurrent.futures.thread":
            work += [vars(item)["future"] for item in frame_reading.read(f, ("self",)).values()]
        elif name == "Thread._bootstrap" and frames.module_of(f) == "threading":
            work += frame_reading.read(f, ("self",)).values()
    return work


def _waiting(top: FrameType) -> list[FrameType]:
    """Return the innermost frames of a thread that run code of ``threading`` or ``concurrent``: the functions
    that wait. ``top`` is the innermost frame of the thread."""
    return list(itertools.takewhile(lambda f: frames.root(frames.module_of(f)) in _WAITING, frames.walk(top)))


def _waits(frame: FrameType, work: list[Any]) -> bool:
    """Return whether the function at ``frame`` waits for one of the objects ``work``: one of its variables
    named in ``_NAMES`` is this object, or a list, set or tuple with it."""
    for value in frame_reading.read(frame, _NAMES).values():
        held = list(value)[:_MOST] if type(value) in (list, set, tuple) else [value]
        if any(h is w for h in held for w in work):
            return True
    return False
