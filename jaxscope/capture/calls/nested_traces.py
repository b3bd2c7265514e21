"""Detect the end of traces that JAX does not announce: those inside another trace, and under a transform.

Writes Traced or PhaseFailed for each, at the next event. Whether a trace returned or raised is found by a
weak reference to a local that only its frame holds: when the frame returns, the local dies while the caller
is the running frame; when it raises, the traceback keeps the local alive, and it dies later while another
frame runs.
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
    """A call whose end is awaited."""

    ref: weakref.ref[Any]
    caller: CodeType


class Endings:
    """Detects how calls end: ``watch`` a call, then get ``of`` it later."""

    def __init__(self) -> None:
        # What runs when the local dies is C code alone: a Ctrl-C that Python code received there
        # would be printed as "Exception ignored in" and lost to the program.
        codes = map(operator.attrgetter("f_code"), map(sys._getframe, itertools.repeat(0)))
        self._left: defaultdict[weakref.ref[Any], CodeType] = defaultdict(functools.partial(next, codes))

    def watch(self, frame: FrameType, local: Any) -> Ending | None:
        """Watch a call by ``local``, which only ``frame`` holds; None where that is not possible."""
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

    def of(self, ending: Ending) -> bool | None:
        """Return True if the call returned, False if it raised, None if it runs or its exception is still
        alive."""
        code = self._left.pop(ending.ref, None)
        return None if code is None else code is ending.caller


class NestedTraces:
    """Watches calls until they are over, and writes the ends of their traces."""

    def __init__(self, writer: Writer, ended: Callable[[int, bool], None]) -> None:
        self._writer = writer
        self._ended = ended  # called with a call's number and whether its trace returned
        self._endings = Endings()
        self.waiting = (
            0  # calls whose end is not written: a call with effects sends five events, and has none
        )

    def begins(self, call: Call, trace_frame: FrameType) -> None:
        """Watch ``call``, whose body is about to run."""
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
        """Write the ends of those of ``calls`` that have ended since the last event."""
        for call in calls:
            if call.ending is not None:
                self._settled(call, self._endings.of(call.ending))

    def over(self, call: Call) -> None:
        """Write the end of ``call``, which is no longer on the stack: if its trace did not return, it
        raised an exception.

        If the call could not be watched, it is only known that its body ran.
        """
        if call.ending is not None:
            self._settled(call, bool(self._endings.of(call.ending)))
        elif call.retraced and not call.trace_written:
            call.trace_written = True
            self._writer.emit(ev.Traced(call=call.number))

    def _settled(self, call: Call, returned: bool | None) -> None:
        if returned is not None:
            call.ending = None
            self.waiting -= 1
            call.trace_written = True
            shield.attempt("stale_captures", self._ended, call.number, returned)
            failed = ev.PhaseFailed(call=call.number, phase=ev.TRACE)
            self._writer.emit(ev.Traced(call=call.number) if returned else failed)
