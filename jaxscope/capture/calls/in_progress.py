"""Find the call of a jitted function that an event of JAX belongs to.

A call is identified by the ``id()`` of its frame on the stack. When the call is over, another frame may get
the same ``id()``, so the order of a call's events is used too: trace, miss of the fast path (JAX's C++
cache), lowering, compilation, each at most once per call. No argument, frame or function of a call is kept
alive.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import frames
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key

# The position of each event in the order of a call's events. The end of a phase has the position of its
# beginning plus one.
TRACE_RANK, MISS_RANK, LOWER_RANK, COMPILE_RANK = 1, 3, 4, 6
RANKS = {ev.TRACE: TRACE_RANK, ev.LOWER: LOWER_RANK, ev.COMPILE: COMPILE_RANK}


Place = tuple[int, int]  # id() of a call's frame and of its function, valid while it is on the stack


def place(frame: FrameType | None) -> Place:
    """Return (``id()`` of ``frame``, ``id()`` of its function), which identifies the call at ``frame``; (0,
    0) if ``frame`` is None. A later call may get a frame with the same address, but rarely for the same
    function."""
    if frame is None:
        return 0, 0
    return id(frame), jax_internals.function_identity(frame)


def how_entered(frame: FrameType | None, nested: bool, key: Key | None) -> str:
    """Return how a jitted function was called: ``nested`` (inside another trace), ``aot`` (lowered or
    compiled ahead of time), ``transform`` (under grad or vmap) or ``call`` (directly).

    Args:
      frame: the frame of the call; None: ahead of time.
      nested: whether the call was made inside another trace.
      key: the cache key of the call; None: it could not be read.
    """
    if nested:
        return "nested"
    if frame is None or frame.f_code.co_name == jax_internals.AheadOfTimeFrame.function:
        return "aot"
    if frame.f_code.co_name == jax_internals.TransformFrame.function or (
        key is not None and any(a.type == "Tracer" for a in key.arguments)
    ):
        return "transform"
    return "call"


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class Call:
    """A call of a jitted function that missed JAX's fast path (the C++ cache).

    Attributes:
      number: the number of the call in the log.
      frame: what identifies the call: (``id()`` of its frame, ``id()`` of its function).
      function: the id of the function in the log.
      detail: whether the function is the user's. Only then the compiled text of the program is stored.
      keeps_lowered: whether the lowered text is stored: if the function is the user's, of a library other
        than JAX that may run the user's code (a model, a loss), or a loop or branch outside jit.
      paths: the paths of the flat arguments; None: unknown.
      rank: the position of the call's latest event in the order trace, miss, lowering, compilation
        (``RANKS``).
      retraced: whether the Python function was run.
      trace_written: whether the end of the trace is in the log.
      ending: detects the end of a trace that JAX does not announce (``nested_traces.Ending``); None: there is
        no trace whose end is to be detected.
      cache: ``hit`` or ``miss`` in the persistent cache; None: JAX has not announced it.
      later: whether the next phase continues an earlier trace or lowering that was made ahead of time.
    """

    number: int
    frame: Place
    function: str
    detail: bool
    paths: list[str] | None
    rank: int
    keeps_lowered: bool = dataclasses.field(init=False)
    retraced: bool = False
    trace_written: bool = False
    ending: Any = None
    cache: str | None = None
    later: bool = False

    def __post_init__(self) -> None:
        self.keeps_lowered = self.detail


class Calls(threading.local):
    """The calls of jitted functions that are in progress on the current thread. The list ``open`` has them,
    outermost first. Each thread has its own list.

    Args:
      over: is called with each call that has ended.
    """

    def __init__(self, over: Callable[[Call], None]) -> None:
        self.open: list[Call] = []
        self._over = over

    def find(self, frame: FrameType, rank: int) -> Call | None:
        """Return the call in progress to which an event of JAX belongs, and set its ``rank``. Return None if
        the event begins a new call. If a call is known at ``frame``, the calls inside it have ended and are
        passed to ``over``.

        Args:
          frame: the frame of the call for which JAX announced the event.
          rank: the position of the event in the order of a call's events (TRACE_RANK, MISS_RANK, ...). If the
            call known at ``frame`` has had this event or a later one, this call has ended too, and is passed
            to ``over``: a new call got a frame with the same address.
        """
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
        """Return the call at ``frame`` if JAX has announced its trace but has not run its Python function
        yet; else None."""
        here = place(frame)
        for call in reversed(self.open):
            if frame is not None and call.frame == here:
                return call if call.rank == TRACE_RANK and not call.retraced else None
        return None

    def begin(self, call: Call, frame: FrameType | None) -> None:
        """Add ``call``, made at ``frame``, to the calls in progress. First end the calls whose frames are not
        among the callers of ``frame`` (``prune``)."""
        self.prune(frame)
        self.open.append(call)

    def prune(self, frame: FrameType | None) -> None:
        """End the calls whose frames are not among the callers of ``frame``: remove them, because they have
        returned or raised, and pass them to ``over``. Calls without a frame (ahead of time) are ended, too.
        None: end all calls."""
        names = jax_internals.call_frames()
        on_stack = {
            place(f)
            for f in frames.walk(frame.f_back if frame is not None else None)
            if f.f_code.co_name in names and jax_internals.in_jax(f)
        }
        self._keep([c for c in self.open if c.frame in on_stack])

    def _keep(self, calls: list[Call]) -> None:
        """Make ``calls`` the calls in progress. Pass all others to ``over``, the innermost first."""
        before, self.open = self.open, calls
        for call in reversed(before):
            if call not in calls:
                self._over(call)

    def running(self) -> set[int]:
        """Return the numbers of the calls in progress."""
        return {c.number for c in self.open}


class Weak:
    """A dictionary that compares its keys by identity and refers to them weakly: an entry is removed when its
    key dies. A key that cannot have weak references is not stored."""

    def __init__(self) -> None:
        self.items: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def get(self, key: Any) -> Any:
        """Return the value stored for ``key``; None if there is none."""
        item = self.items.get(id(key))
        return item[1] if item is not None and item[0]() is key else None

    def put(self, key: Any, value: Any) -> None:
        """Store ``value`` for ``key``, if ``key`` can have weak references."""
        number, items = id(key), self.items
        try:
            ref = weakref.ref(key, lambda _: items.pop(number, None))
        except TypeError:
            return
        items[number] = (ref, value)

    def values(self) -> list[Any]:
        return [v for _, v in list(self.items.values())]
