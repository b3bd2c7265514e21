"""Traces that JAX announces no end of: those inside another trace, and under a transform.

Writes Traced or PhaseFailed for each, at the first event after it was left.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

from jaxscope import jax_internals
from jaxscope.capture import shield
from jaxscope.capture.calls.in_progress import Call
from jaxscope.capture.calls.trace_endings import Endings
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


class Nested:
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
        elif call.retraced and not call.told:
            call.told = True
            self._writer.emit(ev.Traced(call=call.number))

    def _settled(self, call: Call, returned: bool | None) -> None:
        if returned is not None:
            call.ending = None
            self.waiting -= 1
            call.told = True
            shield.attempt("stale_captures", self._ended, call.number, returned)
            failed = ev.PhaseFailed(call=call.number, phase=ev.TRACE)
            self._writer.emit(ev.Traced(call=call.number) if returned else failed)
