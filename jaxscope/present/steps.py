"""Write as text on what the time of a training step is spent."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.step_time import COMPILE, COPY, WAIT, Spent, StepSeconds
from jaxscope.present.escape import escape
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, brief, count, short_seconds

LEAST = 0.05  # share of a step's time; a smaller share is not worth showing
_VERBS = {WAIT: "waiting for", COPY: "copying", COMPILE: "compiling"}
_UNKNOWN = {WAIT: "waiting for values", COPY: "copying", COMPILE: "compiling"}
REST = "Python code, dispatch, and waiting that was not recorded"


def worth_showing(s: StepSeconds) -> bool:
    """Return whether a report shows what the time of a training step is spent on: the known parts of ``s``
    are at least 5 % of the step's time, or the devices wait for the host for at least 5 % of the time."""
    known = sum(part.seconds for part in s.spent)
    return known >= LEAST * s.seconds or (s.device_waits or 0.0) >= LEAST


def total(s: StepSeconds) -> list[Span]:
    """Return the mean time of a step, and over which steps the mean is taken: ``41 ms, the mean of 183 steps
    without a compilation (2 to 184 of 200)``."""
    which = "" if s.compiling else " without a compilation"
    of = f" of {s.total:,}" if s.total is not None and s.total > s.last else ""
    return [
        (short_seconds(s.seconds), "figure"),
        f", the mean of {count(s.steps, 'step')}{which} ({s.first:,} to {s.last:,}{of})",
    ]


def part(p: Spent, places: Places) -> list[Span]:
    """Return on what a step spends the time ``p``, and the user's line that causes it: ``waiting for
    float(loss)  train.py:31``. ``places`` shortens file names."""
    where = places.frame(p.line) or "an unknown line"
    if p.caller is not None:
        where += f", called at {places.frame(p.caller)}"
    named = f"{_VERBS[p.cause]} {brief(escape(p.text), 80)}" if p.text else _UNKNOWN[p.cause]
    return [(named, "name"), (f"  {where}", "path")]


def share(seconds: float, s: StepSeconds) -> str:
    """Return ``seconds`` of the step ``s`` as text, with their share of the time of the whole step:
    ``30 ms   73 %``."""
    return f"{short_seconds(seconds)}  {100 * seconds / s.seconds:3.0f} %"


def in_short(s: StepSeconds, places: Places) -> list[Span]:
    """Return the time of a step, and its costliest line: ``a step takes 41 ms: 30 ms waiting for float(loss)
    train.py:31``. A line with less than 5 % of the time is left out. ``places`` shortens file names."""
    spans: list[Span] = ["a step takes ", (short_seconds(s.seconds), "figure")]
    if s.spent and s.spent[0].seconds >= LEAST * s.seconds:
        spans += [": ", f"{short_seconds(s.spent[0].seconds)} ", *part(s.spent[0], places)]
    return spans


def device_waits(s: StepSeconds) -> Iterator[Span]:
    """Yield a text about how long the devices waited for the host, as measured by a profile: ``the device
    waited for the host 63 % of the time (profile of steps 10 to 12)``. Yield nothing if there is no such
    profile."""
    if s.device_waits is not None and s.profiled is not None:
        first, last = s.profiled
        steps = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
        device = "device" if s.devices == 1 else "devices"
        yield f"the {device} waited for the host {100 * s.device_waits:.0f} % of the time"
        yield f" (profile of {steps})", "dim"
