"""Traces whose end JAX does not announce: those inside another trace, and under a transform.

Writes Traced or PhaseFailed for each, at the first event after it was left. Whether it returned or raised is read
from a local that only its frame holds: the local dies when the frame returns, while the caller is the running frame;
an exception's traceback keeps it longer, and then another frame runs. Keeps the local, and the frame, no moment longer.
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
    """One call that is watched."""

    ref: weakref.ref[Any]
    caller: CodeType


class Endings:
    """``watch`` a call, and ask ``of`` it later."""

    def __init__(self) -> None:
        # What runs when the local dies is C code alone: a Ctrl-C that Python code received there
        # would be printed as "Exception ignored in" and lost to the program.
        codes = map(operator.attrgetter("f_code"), map(sys._getframe, itertools.repeat(0)))
        self._left: defaultdict[weakref.ref[Any], CodeType] = defaultdict(functools.partial(next, codes))

    def watch(self, frame: FrameType, local: Any) -> Ending | None:
        """``local`` is held by ``frame`` alone. None: this one cannot be watched."""
        if local is None or frame.f_back is None:
            return None
        try:
            ref = weakref.ref(local, self._left.__getitem__)
            hash(ref)  # while it lives; a dead one has the hash of then
        except TypeError:
            return None
        return Ending(ref, frame.f_back.f_code)

    def of(self, ending: Ending) -> bool | None:
        """Did the call return? False: it raised. None: it runs, or its exception is still alive."""
        code = self._left.pop(ending.ref, None)
        return None if code is None else code is ending.caller


class NestedTraces:
    """Watches the calls it is given until they are over."""

    def __init__(self, writer: Writer, ended: Callable[[int, bool], None]) -> None:
        self._writer = writer
        self._ended = ended  # called with a call's number and whether its trace returned
        self._endings = Endings()
        self.waiting = (
            0  # calls whose end is not written: a call with effects sends five events, and has none
        )

    def begins(self, call: Call, trace_frame: FrameType) -> None:
        """The body of ``call`` is about to run."""
        call.ending = self._endings.watch(trace_frame, jax_internals.held_by_trace(trace_frame))
        if call.ending is not None:
            self.waiting += 1
            self._writer.emit(ev.PhaseBegan(call=call.number, phase=ev.TRACE))

    def announced(self, call: Call) -> None:
        """JAX has announced the end of ``call``'s trace itself: it need not be watched any longer."""
        if call.ending is not None:
            call.ending = None
            self.waiting -= 1

    def settle(self, calls: list[Call]) -> None:
        """Write what ended since the last event; ``calls`` are in progress as far as is known."""
        for call in calls:
            if call.ending is not None:
                self._settled(call, self._endings.of(call.ending))

    def over(self, call: Call) -> None:
        """``call`` is not on the stack any more: a trace that did not return has raised.

        Of one that could not be watched nothing is known but that its body ran.
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
