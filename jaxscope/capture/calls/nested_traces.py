"""Detect the end of traces that JAX does not announce: those inside another trace, and those under a
transform such as grad or vmap.

The end of such a trace is written to the log (``Traced`` or ``PhaseFailed``) when JAX next sends an event.

To find out whether a trace returned or raised an exception, a weak reference is made to an object that only a
local variable of the trace's frame refers to. If the frame returns, the object dies at once, while the
caller's frame is running. If the frame raises, the traceback keeps the object alive. It dies later, while
another frame is running.
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
    """Tells whether a call returned or raised: it returned if the object of ``ref`` died while the code
    ``caller`` ran.

    Attributes:
      ref: a weak reference to an object that only the call's frame refers to.
      caller: the code of the function that made the call.
    """

    ref: weakref.ref[Any]
    caller: CodeType


class Endings:
    """Detects whether calls return or raise an exception. ``watch`` a call, then pass the result to
    ``returned``."""

    def __init__(self) -> None:
        # When the object dies, only C code runs. If Python code ran there, a Ctrl-C might arrive in it, which
        # would be printed as "Exception ignored in" and not reach the program.
        codes = map(operator.attrgetter("f_code"), map(sys._getframe, itertools.repeat(0)))
        self._left: defaultdict[weakref.ref[Any], CodeType] = defaultdict(functools.partial(next, codes))

    def watch(self, frame: FrameType, local: Any) -> Ending | None:
        """Begin to watch the call at ``frame``. Return an ``Ending`` for ``returned``; None if the call
        cannot be watched. ``local`` is an object that only ``frame`` refers to, so that it dies when the
        frame does."""
        if local is None or frame.f_back is None:
            return None
        try:
            ref = weakref.ref(local, self._left.__getitem__)
            # A dead reference can only return a hash that was computed while the object was alive.
            hash(ref)
        except TypeError:
            return None
        return Ending(ref, frame.f_back.f_code)

    def returned(self, ending: Ending) -> bool | None:
        """Return True if the call of ``ending`` returned, and False if it raised. Return None if the call is
        still running or its exception is still alive. After an answer of True or False, later results for
        ``ending`` are None."""
        code = self._left.pop(ending.ref, None)
        return None if code is None else code is ending.caller


class NestedTraces:
    """Watches the traces whose end JAX does not announce, and writes their ends to the log.

    Args:
      ended: is called at the end of each watched trace that JAX does not announce, with the number of the
        call, and with True if the trace returned or False if it raised.
    """

    def __init__(self, writer: Writer, ended: Callable[[int, bool], None]) -> None:
        self._writer = writer
        self._ended = ended
        self._endings = Endings()
        self.waiting = 0  # watched calls whose end of trace is not in the log yet

    def begins(self, call: Call, trace_frame: FrameType) -> None:
        """Watch ``call``, whose Python function is about to run, and log that its trace begins.
        ``trace_frame`` is the frame of JAX that traces the function. Do nothing if the call cannot be
        watched."""
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
        """For each of ``calls``, log the end of its trace if the trace has ended."""
        for call in calls:
            if call.ending is not None:
                self._settled(call, self._endings.returned(call.ending))

    def over(self, call: Call) -> None:
        """Log the end of the trace of ``call``, whose frame is no longer on the stack. A trace that has not
        returned has raised an exception. For a call that is not watched, log ``Traced`` if its Python
        function ran and the log does not have the end of its trace yet."""
        if call.ending is not None:
            self._settled(call, bool(self._endings.returned(call.ending)))
        elif call.retraced and not call.trace_written:
            call.trace_written = True
            self._writer.emit(ev.Traced(call=call.number))

    def _settled(self, call: Call, returned: bool | None) -> None:
        """Log the end of the trace of ``call``: ``Traced`` if ``returned`` is True, ``PhaseFailed`` if it is
        False. None means that the trace has not ended: do nothing."""
        if returned is not None:
            call.ending = None
            self.waiting -= 1
            call.trace_written = True
            shield.attempt("stale_captures", self._ended, call.number, returned)
            failed = ev.PhaseFailed(call=call.number, phase=ev.TRACE)
            self._writer.emit(ev.Traced(call=call.number) if returned else failed)
