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
from jaxscope.schema.line_times import COMPILING, LineTimes

TITLE = "Time of the main thread, by line"
SETUP = "Time before the first use of a device, by line"
SHOWN = 6


def as_json(run: Run) -> contract.LineTimes | None:
    """Return the entry ``line_times`` of the JSON report. Return None if the times were not measured."""
    times = run.main.line_times if run.main is not None else None
    if times is None:
        return None

    def entry(s: Spent, whole: float) -> contract.LineTime:
        share = s.seconds / whole if whole else 0.0
        return contract.LineTime(
            s.doing, s.line, s.seconds, share, s.samples, s.blocked, s.callers, s.library
        )

    return contract.LineTimes(
        seconds=times.seconds,
        lines=[entry(s, times.seconds) for s in model.by_line(run)],
        traced=[entry(s, times.seconds) for s in model.traced(run)],
        setup_seconds=times.setup_seconds,
        setup=[entry(s, times.setup_seconds) for s in model.setup(run)],
    )


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield text about the source lines at which the main thread spent most of its time, in this order: those
    before JAX had a backend, those after that, and those that JAX traced for long. Yield nothing if no source
    line takes much.

    Source lines that compile share one row. ``everything`` (``--all``) lists all source lines, each in its
    own row. ``places`` shortens file names.
    """
    yield from _setup(run, places, everything=everything)
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
    yield line((TITLE, "title"), f"  (approximate; samples cover {seconds(times.seconds)})")
    for s in shown:
        yield line(*words.part(s, places), right=words.share(s.seconds, times), indent=2, hang=2)
    if not everything:
        yield from _compiling(run, every, times)
    for s in traced:
        yield line(*words.part_of_trace(s, places), right=words.share(s.seconds, times), indent=2, hang=2)
    left = [s for s in found if s not in shown]
    if left:
        more = count(len(left), "more line")
        rest = words.share(sum(s.seconds for s in left), times)
        yield line((f"{more}: --all shows them", "dim"), right=rest, indent=2)


def _setup(run: Run, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield text about the source lines at which the main thread spent most of its time before JAX had a
    backend."""
    found, whole = model.setup(run), model.setup_seconds(run)
    least = words.LEAST * (run.seconds or whole)
    shown = found if everything else [s for s in found if s.seconds >= least and s.samples >= words.FEWEST]
    if not shown:
        return
    yield BLANK
    yield line((SETUP, "title"), f"  (approximate; samples cover {seconds(whole)})")
    for s in shown[: len(shown) if everything else SHOWN]:
        share = f"{seconds(s.seconds)}  {100 * s.seconds / whole if whole else 0:3.0f} %"
        yield line(*words.part(s, places), right=share, indent=2, hang=2)


def _compiling(run: Run, every: list[Spent], times: LineTimes) -> Iterator[Line]:
    """Yield a row with the seconds of those source lines in ``every`` that traced, lowered or compiled. These
    are the seconds that JAX measured, as elsewhere in the report; if clearly more were sampled, a second row
    has the rest."""
    members = [s for s in every if s.doing == COMPILING]
    sampled, samples = sum(s.seconds for s in members), sum(s.samples for s in members)
    if not sampled:
        return
    exact = run.compiling_seconds or None
    between = exact is not None and abs(sampled - exact) <= words.LEAST * times.seconds
    within = sampled if exact is None else exact if between else min(sampled, exact)
    name = "tracing, lowering and compiling, all lines together"
    yield line((name, "dim"), right=words.share(within, times), indent=2)
    more = sampled - within
    if more >= words.LEAST * times.seconds and samples >= words.FEWEST:
        name = "more time in JAX's tracer, such as for control flow outside jit"
        yield line((name, "dim"), right=words.share(more, times), indent=2)
