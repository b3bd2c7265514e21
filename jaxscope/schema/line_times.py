"""The event of where the main thread spends its time, line by line."""

from __future__ import annotations

import msgspec

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Frame

# What the main thread does at a line. COMPILING: JAX traces, lowers or compiles. WAITING: for values of
# devices. COPYING: arrays to devices. CHECKING: results for NaN (jax_debug_nans). CALLING: a jitted function
# that is compiled already. OPERATIONS: the line runs operations outside jit, or other code of JAX. PYTHON:
# other Python code, of the user or a library; this may be a call of a jitted function that jaxscope did not
# recognize.
COMPILING, WAITING, COPYING, CALLING = "compiling", "waiting", "copying", "calling"
CHECKING, OPERATIONS, PYTHON = "checking", "operations", "python"
SLEEPING = "sleeping"  # a part of ``python``: the thread waits for a lock, a file, or in C code for a device
STANDARD_LIBRARY = "python"  # for ``LineTime.library``


class LineTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """The seconds that the main thread spent at one line doing one thing, measured by samples of its stack.

    Attributes:
      doing: ``compiling``, ``waiting`` (for values of devices), ``copying`` (to devices), ``checking``
        (results for NaN), ``calling`` (a compiled function), ``operations`` (outside jit, or other code of
        JAX) or ``python`` (any other code).
      stack: the user's frames (or if there are none, those of installed packages), innermost first, at most
        six. While JAX traces, the first frame is the line that made JAX trace.
      traced: the user's frames in the function that JAX traces, innermost first, at most six; empty: JAX
        traces nothing.
      seconds: the wall time, in seconds.
      samples: the number of samples. The error of ``seconds`` is about ``seconds / sqrt(samples)``.
      blocked: the part of ``seconds`` in which the thread slept: it waited for a device, a lock or a file.
      library: the installed package whose code the line runs, if ``doing`` is ``python``; ``python`` stands
        for the standard library. None: the line runs the user's own code.
      column: where the running call or expression begins on the line, in bytes; None: unknown.
    """

    doing: str
    stack: list[Frame]
    seconds: float
    samples: int
    blocked: float = 0.0
    traced: list[Frame] = []
    library: str | None = None
    column: int | None = None


class LineTimes(Event, frozen=True, tag="LineTimes"):
    """The lines at which the main thread spent its time since the recording began. Each event replaces the
    earlier LineTimes events of its process.

    Attributes:
      seconds: the wall time that was sampled since JAX had a backend. The sum over ``lines`` is smaller if no
        line of the user was on the stack at times, or if there were too many lines.
      lines: an entry for each stack and each activity of the thread at this stack, the longest first.
      debugging: the settings of JAX for debugging that were on when the event was written, such as
        ``jax_debug_nans``.
      setup_seconds: the wall time that was sampled before JAX had a backend, from the end of ``import jax``
        on. 0: nothing was sampled then, for example because the program forked.
      setup: like ``lines``, for the time before JAX had a backend.
    """

    seconds: float = 0.0
    lines: list[LineTime] = []
    debugging: list[str] = []
    setup_seconds: float = 0.0
    setup: list[LineTime] = []
