"""Report what JAX's profiler measured (``--profile``): the time on the devices for each line of the user's
code, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model import measured as model
from jaxscope.model.measured import Measured, Share
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.present.text import Places, count, listed, short_seconds
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line

SHOWN = 10
KINDS = 3
LEAST = 0.01  # lines with a smaller share of the devices' time are counted together


def as_json(run: Run) -> list[contract.Profile]:
    """Return the entry ``profiles`` of the JSON report: what JAX's profiler measured. The list is empty if
    nothing was measured."""
    return [
        contract.Profile.copy_of(
            m.event,
            pid=m.process.pid,
            devices=m.devices,
            step_seconds=m.seconds,
            device_seconds=m.device_seconds,
            lines=[contract.MeasuredLine(s.line, s.seconds, s.opcodes) for s in m.lines],
        )
        for m in model.profiles(run)
    ]


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield lines about what JAX's profiler measured: for each profile, the lines of code that took most
    time, with their seconds in one step. ``places`` shortens file names. ``everything`` (``--all``) lists all
    lines of code."""
    for m in model.profiles(run):
        yield BLANK
        first, last = m.event.first_step, m.event.last_step
        steps = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
        device = "on each device" if m.devices != 1 else "on the device"
        if m.devices is None:
            device = "on all devices together"
        wall = "" if m.seconds is None else f" of {short_seconds(m.seconds)}"
        yield line(
            ("Measured operations", "title"),
            f"  {steps}: {short_seconds(m.device_seconds)} {device}{wall} in one step",
            hang=4,
        )
        shown = m.lines if everything else [s for s in m.lines if s.seconds >= LEAST * m.device_seconds]
        shown = shown if everything else shown[:SHOWN]
        for s in shown:
            yield _line(s, m, places)
        rest = m.lines[len(shown) :]
        if rest:
            spent = short_seconds(sum(s.seconds for s in rest))
            yield line((f"and {count(len(rest), 'more line')}, {spent}: --all shows them", "dim"), indent=2)
        if m.event.left_out:
            left = f"{count(m.event.left_out, 'further instruction')}, the fastest, not recorded"
            yield line((left, "dim"), indent=2)
        if not m.lines:
            yield line("the profile names no operations of a compiled program", indent=2)
        if m.event.file:
            yield line((f"the profile for xprof: {escape(m.event.file, 200)}", "dim"), indent=2)


def _line(s: Share, m: Measured, places: Places) -> Line:
    where = places.inside(s.line) or "an unknown line"
    kinds = listed([escape(kind, 40) for kind in s.opcodes], KINDS)
    share = f"{s.seconds / m.device_seconds:.0%}".replace("%", " %") if m.device_seconds else ""
    return line(
        (where, "bold" if s.line is not None else "warning"),
        (f"  {kinds}", "dim"),
        right=f"{short_seconds(s.seconds)}  {share:>5}",
        indent=2,
        hang=2,
    )
