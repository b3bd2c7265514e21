"""Report what takes the time of a training step, by line of the user's code, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.model.step_time import step_seconds
from jaxscope.present import steps as words
from jaxscope.present.text import Places, count
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line

TITLE = "Time of a step"
SHOWN = 6
LEAST = 0.01  # lines with a smaller share of a step are counted together


def as_json(run: Run) -> contract.StepTime | None:
    """Return the entry ``step_time`` of the JSON report: what takes the time of a training step. Return None
    if this is unknown."""
    s = step_seconds(run)
    if s is None:
        return None
    return contract.StepTime(
        first_step=s.first,
        last_step=s.last,
        steps=s.steps,
        includes_compiling=s.compiling,
        seconds=s.seconds,
        lines=[contract.StepLine(p.cause, p.line, p.text, p.caller, p.seconds) for p in s.spent],
        rest_seconds=s.rest,
        device_waits_share=s.device_waits,
        profiled_steps=None if s.profiled is None else list(s.profiled),
    )


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield lines about the lines of code that take most of the time of a training step, with their seconds,
    about the rest of the step, and about the waits of the devices for the host. Yield nothing if neither all
    lines of code together nor these waits take much.

    ``everything`` (``--all``) lists all lines of code, even if they take little. ``places`` shortens file
    names.
    """
    s = step_seconds(run)
    if s is None or not (everything or words.worth_showing(s)):
        return
    yield BLANK
    yield line((TITLE, "title"), "  ", *words.total(s), hang=4)
    shown = s.spent if everything else [p for p in s.spent if p.seconds >= LEAST * s.seconds][:SHOWN]
    for p in shown:
        yield line(*words.part(p, places), right=words.share(p.seconds, s), indent=2, hang=2)
    left = s.spent[len(shown) :]
    if left:
        more = count(len(left), "more line")
        yield line(
            (f"{more}: --all shows them", "dim"), right=words.share(sum(p.seconds for p in left), s), indent=2
        )
    yield line((f"the rest: {words.REST}", "dim"), right=words.share(s.rest, s), indent=2, hang=2)
    waits = list(words.device_waits(s))
    if waits:
        yield line(*waits, indent=2, hang=2)
