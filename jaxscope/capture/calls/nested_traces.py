"""Detect the end of traces that JAX does not announce: those inside another trace, and under a transform.

For each of them ``Traced`` or ``PhaseFailed`` is written at the next event. Whether a trace returned or
raised an exception is found by a weak reference to an object that only a local variable of its frame refers
to. If the frame returns, the object dies at once, while the caller's frame is the running one. If it raises,
the traceback keeps the object alive, and it dies later, while another frame is running.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import shield
from jaxscope.capture.calls.in_progress import Call
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


class Ending(NamedTuple):
    """What shows how a watched call ended.

    Attributes:
      ref: a weak reference to an object that only the call's frame refers to.
      caller: the code of the function that made the call.
    """

    ref: weakref.ref[Any]
    caller: CodeType


class Endings:
    """Detects whether calls return or raise an exception: ``watch`` a call, and pass the result to
    ``returned`` later."""

    def __init__(self) -> None:
        # When the object dies, only C code runs. If Python code ran there, a Ctrl-C might arrive in it, which
        # would be printed as "Exception ignored in" and not reach the program.
        codes = map(operator.attrgetter("f_code"), map(sys._getframe, itertools.repeat(0)))
        self._left: defaultdict[weakref.ref[Any], CodeType] = defaultdict(functools.partial(next, codes))

    def watch(self, frame: FrameType, local: Any) -> Ending | None:
        """Watch the call at ``frame`` by ``local``, an object that only the frame refers to. Return None if
        that is not possible."""
        if local is None or frame.f_back is None:
            return None
        try:
            ref = weakref.ref(local, self._left.__getitem__)
            hash(
                ref
            )  # computed and cached while it is alive: a dead reference without a hash cannot be a key
        except TypeError:
            return None
        return Ending(ref, frame.f_back.f_code)

    def returned(self, ending: Ending) -> bool | None:
        """Return True if the watched call returned, False if it raised an exception, None if it still runs or
        its exception is still alive."""
        code = self._left.pop(ending.ref, None)
        return None if code is None else code is ending.caller


class NestedTraces:
    """Watches calls until they are over, and writes the ends of their traces.

    Args:
      writer: writes the events.
      ended: is called with the number of a call and whether its trace returned.
    """

    def __init__(self, writer: Writer, ended: Callable[[int, bool], None]) -> None:
        self._writer = writer
        self._ended = ended
        self._endings = Endings()
        self.waiting = (
            0  # calls whose end is not written yet; if it is 0, events of calls with effects need no check
        )

    def begins(self, call: Call, trace_frame: FrameType) -> None:
        """Watch ``call``, whose Python function is about to run, and write that its trace begins.
        ``trace_frame`` is the frame that traces it."""
        call.ending = self._endings.watch(trace_frame, jax_internals.held_by_trace(trace_frame))
        if call.ending is not None:
            self.waiting += 1
            self._writer.emit(ev.PhaseBegan(call=call.number, phase=ev.TRACE))

    def announced(self, call: Call) -> None:
        """Stop watching ``call``: JAX itself has announced the end of its trace."""
        if call.ending is not None:
            call.ending = None
            self.waiting -= 1

    def settle(self, calls: list[Call]) -> None:
        """Write the ends of those traces of ``calls`` that have ended since the last event."""
        for call in calls:
            if call.ending is not None:
                self._settled(call, self._endings.returned(call.ending))

    def over(self, call: Call) -> None:
        """Write the end of the trace of ``call``, which is no longer on the stack. If the trace did not
        return, it raised an exception.

        If the call could not be watched, ``Traced`` is written, because it is known only that its function
        ran.
        """
        if call.ending is not None:
            self._settled(call, bool(self._endings.returned(call.ending)))
        elif call.retraced and not call.trace_written:
            call.trace_written = True
            self._writer.emit(ev.Traced(call=call.number))

    def _settled(self, call: Call, returned: bool | None) -> None:
        """Write how the trace of ``call`` ended: whether it ``returned``. Do nothing if that is None (not
        known yet)."""
        if returned is not None:
            call.ending = None
            self.waiting -= 1
            call.trace_written = True
            shield.attempt("stale_captures", self._ended, call.number, returned)
            failed = ev.PhaseFailed(call=call.number, phase=ev.TRACE)
            self._writer.emit(ev.Traced(call=call.number) if returned else failed)
