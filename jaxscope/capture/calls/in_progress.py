"""Find the call that an event of JAX belongs to.

The call's frame on the stack identifies it. Because a frame's ``id`` is recycled when the call is over, the
order of events is used too: trace < miss < lower < compile, each at most once per call. Only numbers and text
are kept of a call, never an argument, a frame or a function.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import frames
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key

# An end ranks one above its beginning.
TRACE_RANK, MISS_RANK, LOWER_RANK, COMPILE_RANK = 1, 3, 4, 6
RANKS = {ev.TRACE: TRACE_RANK, ev.LOWER: LOWER_RANK, ev.COMPILE: COMPILE_RANK}


Place = tuple[int, int]  # id() of a call's frame and of its function, valid while it is on the stack


def place(frame: FrameType | None) -> Place:
    """Return the identity of a call. Frames of two calls may share an address, but rarely the function
    too."""
    if frame is None:
        return 0, 0
    return id(frame), jax_internals.function_identity(frame)


def how_entered(frame: FrameType | None, nested: bool, key: Key | None) -> str:
    """Return ``Missed.entry`` of a call: nested, aot, transform or call."""
    if nested:
        return "nested"
    if frame is None or frame.f_code.co_name == jax_internals.AheadOfTimeFrame.function:
        return "aot"
    if frame.f_code.co_name == jax_internals.TransformFrame.function or (
        key is not None and any(a.type == "Tracer" for a in key.arguments)
    ):
        return "transform"
    return "call"


class Call:
    """One miss. ``detail``: of a user's function, whose program texts are stored."""

    __slots__ = (
        "cache", "detail", "ending", "frame", "function", "later", "number", "paths", "rank", "retraced",
        "trace_written",
    )  # fmt: skip

    def __init__(
        self, number: int, frame: Place, function: str, detail: bool, paths: list[str] | None, rank: int
    ) -> None:
        self.number = number
        self.frame = frame
        self.function = function
        self.detail = detail
        self.paths = paths  # of the flat arguments; None: unknown
        self.rank = rank  # of the last event
        self.retraced = False  # its Python body ran
        self.trace_written = False  # Traced is in the log
        self.ending: Any = None  # of a trace whose end JAX does not announce
        self.cache: str | None = None  # hit or miss in the persistent cache
        self.later = False  # it is lowered or compiled after the Python call that traced it


class Calls(threading.local):
    """The misses in progress on this thread, outermost first. ``over`` is called with each that has ended."""

    def __init__(self, over: Callable[[Call], None]) -> None:
        self.open: list[Call] = []
        self._over = over

    def find(self, frame: FrameType, rank: int) -> Call | None:
        """Return the call at ``frame``, if an event of ``rank`` can continue it."""
        here = place(frame)
        for i in range(len(self.open) - 1, -1, -1):
            call = self.open[i]
            if call.frame == here:
                if rank > call.rank:
                    call.rank = rank
                    self._keep(self.open[: i + 1])
                    return call
                self._keep(self.open[:i])
                return None
        return None

    def tracing(self, frame: FrameType | None) -> Call | None:
        """Return the call at ``frame`` if its tracing phase has begun and its body has not."""
        here = place(frame)
        for call in reversed(self.open):
            if frame is not None and call.frame == here:
                return call if call.rank == TRACE_RANK and not call.retraced else None
        return None

    def begin(self, call: Call, frame: FrameType | None) -> None:
        """Add ``call``, and end the calls that are no longer on the stack."""
        self.prune(frame)
        self.open.append(call)

    def prune(self, frame: FrameType | None) -> None:
        """End the calls that are not on the stack above ``frame``."""
        names = jax_internals.call_frames()
        on_stack = {
            place(f)
            for f in frames.walk(frame.f_back if frame is not None else None)
            if f.f_code.co_name in names and jax_internals.in_jax(f)
        }
        self._keep([c for c in self.open if c.frame in on_stack])

    def _keep(self, still: list[Call]) -> None:
        before, self.open = self.open, still
        for call in reversed(before):
            if call not in still:
                self._over(call)

    def running(self) -> set[int]:
        return {c.number for c in self.open}


class Weak:
    """A dictionary by object identity that keeps no key alive and forgets dead ones."""

    def __init__(self) -> None:
        self.items: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def get(self, key: Any) -> Any:
        item = self.items.get(id(key))
        return item[1] if item is not None and item[0]() is key else None

    def put(self, key: Any, value: Any) -> None:
        number, items = id(key), self.items
        try:
            ref = weakref.ref(key, lambda _: items.pop(number, None))
        except TypeError:
            return
        items[number] = (ref, value)

    def values(self) -> list[Any]:
        return [v for _, v in list(self.items.values())]
