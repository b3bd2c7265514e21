"""Report where the main thread spent its time, by line of the user's code, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model import line_times as model
from jaxscope.model.line_times import Spent
from jaxscope.model.run import Run
from jaxscope.present import line_times as words
from jaxscope.present.text import Places, count, seconds
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.schema.line_times import COMPILING

TITLE = "Time of the main thread, by line"
SHOWN = 6


def as_json(run: Run) -> contract.LineTimes | None:
    """Return the entry ``line_times`` of the JSON report. Return None if the times were not measured."""
    times = model.measured(run)
    if times is None:
        return None

    def entry(s: Spent) -> contract.LineTime:
        share = s.seconds / times.seconds if times.seconds else 0.0
        return contract.LineTime(
            s.doing, s.line, s.seconds, share, s.samples, s.blocked, s.callers, s.library
        )

    return contract.LineTimes(
        seconds=times.seconds,
        lines=[entry(s) for s in model.by_line(run)],
        traced=[entry(s) for s in model.traced(run)],
    )


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield lines about the lines of code at which the main thread spent most of its time, then about those
    that JAX traced for long. Yield nothing if no line takes much.

    Lines that compile share one row. ``everything`` (``--all``) lists all lines of code, each in its own row.
    ``places`` shortens file names.
    """
    times = model.measured(run)
    if times is None:
        return
    every = model.by_line(run)
    found = [s for s in every if s.doing != COMPILING or everything]
    shown = found if everything else words.worth_showing(found, times)[:SHOWN]
    traced = model.traced(run) if everything else words.worth_showing(model.traced(run), times)[:SHOWN]
    if not shown and not traced:
        return
    yield BLANK
    yield line((TITLE, "title"), f"  (approximate, {seconds(times.seconds)} in total)")
    for s in shown:
        yield line(*words.part(s, places), right=words.share(s.seconds, times), indent=2, hang=2)
    compiling = sum(s.seconds for s in every if s.doing == COMPILING)
    if compiling and not everything:
        share = words.share(compiling, times)
        yield line(("tracing, lowering and compiling, all lines together", "dim"), right=share, indent=2)
    for s in traced:
        yield line(*words.part_of_trace(s, places), right=words.share(s.seconds, times), indent=2, hang=2)
    left = found[len(shown) :]
    if left:
        more = count(len(left), "more line")
        rest = words.share(sum(s.seconds for s in left), times)
        yield line((f"{more}: --all shows them", "dim"), right=rest, indent=2)
