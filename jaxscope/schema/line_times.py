"""The event of where the main thread spends its time, line by line."""

from __future__ import annotations

import msgspec

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Frame

# What the main thread does at a line: JAX traces, lowers or compiles; it waits for values of devices; it
# copies arrays to devices; it calls a jitted function that is compiled already; it runs operations outside
# jit, or other code of JAX; it runs the code of the line itself, or of other libraries. Such code may be a
# call of a jitted function that was not recognized.
COMPILING, WAITING, COPYING, CALLING = "compiling", "waiting", "copying", "calling"
OPERATIONS, PYTHON = "operations", "python"
SLEEPING = "sleeping"  # a part of ``python``: the thread waits for a lock, a file, or in C code for a device
STANDARD_LIBRARY = "python"  # for ``LineTime.library``


class LineTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """The seconds that the main thread spent at one line with one thing, measured by samples of its stack.

    Attributes:
      doing: ``compiling``, ``waiting``, ``copying``, ``calling``, ``operations`` or ``python``.
      stack: the user's frames, innermost first. While JAX traces, the first is the line that made it do so.
      traced: the user's frames that JAX traces, innermost first; empty: it traces none.
      seconds: the wall time, in seconds.
      samples: the number of samples. The error of ``seconds`` is about ``seconds / sqrt(samples)``.
      blocked: the part of ``seconds`` in which the thread slept: it waited for a device, a lock or a file.
      library: the installed package whose code the line runs, if ``doing`` is ``python``; for the standard
        library ``python``; None: it runs code of its own.
      column: the column in bytes at which the call or expression begins that the line runs; None: unknown.
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
    """Where the main thread spent its time since the recording began. The latest event of a process counts.

    Attributes:
      seconds: the wall time that was sampled. It is more than the sum over ``lines`` if no line of the user
        was on the stack, or if there were too many lines.
      lines: one entry for each stack and thing that the thread did, the longest first.
    """

    seconds: float = 0.0
    lines: list[LineTime] = []
