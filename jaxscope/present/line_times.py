"""Write as text where in the user's code the main thread spent its time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxscope.model.line_times import LONG_S, Spent
from jaxscope.present.escape import escape
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, brief, seconds
from jaxscope.schema.line_times import (
    CALLING,
    CHECKING,
    COMPILING,
    COPYING,
    OPERATIONS,
    PYTHON,
    SLEEPING,
    WAITING,
    LineTimes,
)

LEAST = 0.05  # share of the measured time from which a line is worth showing
FEWEST = 10  # samples: the error of the time is then about 30 %
_COMPREHENSION = re.compile(r"(\.<locals>)?\.?<(listcomp|dictcomp|setcomp|genexpr)>")
_NAMES = {
    COMPILING: "tracing, lowering and compiling",
    WAITING: "waiting for the devices",
    COPYING: "making arrays, or copying them to devices",
    CHECKING: "checking results for NaN",
    OPERATIONS: "operations outside jit",
    CALLING: "calling a jitted function, or waiting until earlier calls have finished",
    PYTHON: "Python code",
    SLEEPING: "sleeping, or waiting for a lock, a file or a device",
}


def worth_showing(line_times: Sequence[Spent], times: LineTimes) -> list[Spent]:
    """Return the entries of ``line_times`` (the time of one line each) that a report shows. They take at
    least 5 % of the measured time of ``times``, and are accurate: they have at least 10 samples or 2 seconds,
    or the thread slept for most of the time."""
    # One sample shows the whole time of a sleep, and of one long call of C code.
    return [
        s
        for s in line_times
        if s.seconds >= LEAST * times.seconds
        and (s.samples >= FEWEST or s.seconds >= LONG_S or 2 * s.blocked > s.seconds)
    ]


def part(s: Spent, places: Places) -> list[Span]:
    """Return a text about the time ``s`` at one line: what the main thread did, and the line. Example:
    ``operations outside jit  train.py:31 in update``. ``places`` shortens file names."""
    function = _COMPREHENSION.sub("", s.line.function).replace(".<locals>", "")
    inside = f" in {brief(escape(function), 60)}" if function not in ("", "<module>") else ""
    of = f" of {brief(escape(s.library), 40)}" if s.library is not None else ""
    return [
        (_NAMES.get(s.doing, brief(escape(s.doing), 40)) + of, "name"),
        (f"  {places.frame(s.line)}{inside}", "path"),
    ]


def part_of_trace(s: Spent, places: Places) -> list[Span]:
    """Return a text about the user's line in ``s``, which JAX traced: ``included above: traced by JAX
    model.py:31 in __call__``. ``places`` shortens file names."""
    return [("included above: traced by JAX", "name"), *part(s, places)[1:]]


def in_short(s: Spent, times: LineTimes, places: Places) -> list[Span]:
    """Return a text about ``s``, the line with the most time apart from compilations: ``apart from compiling,
    most time of the main thread: Python code  train.py:7 in augment, 6.3 s, 60 %``. The percentage is the
    share of the measured time, which ``times`` has. ``places`` shortens file names."""
    shown = f"{seconds(s.seconds)}, {100 * s.seconds / times.seconds if times.seconds else 0:.0f} %"
    return ["apart from compiling, most time of the main thread: ", *part(s, places), ", ", (shown, "figure")]


def share(spent: float, times: LineTimes) -> str:
    """Return ``spent`` seconds as text, with their share of the measured time, which ``times`` has: ``1.4 s
    13 %``."""
    return f"{seconds(spent)}  {100 * spent / times.seconds if times.seconds else 0:3.0f} %"
