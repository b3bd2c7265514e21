"""Format facts about the run that the Overview shows where it has room: which lines take the main thread's
time, what a step consists of, and what takes memory."""

from __future__ import annotations

from collections.abc import Sequence

from jaxscope.model import arrays, step_time
from jaxscope.model import line_times as times_of_lines
from jaxscope.model.run import Run
from jaxscope.present import line_times, steps
from jaxscope.present.arrays import UNNAMED, moment, total
from jaxscope.present.programs import memory_of, memory_parts, peak_bytes_of
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, count, size
from jaxscope.tui.cells import Part
from jaxscope.tui.rows.source_lines import lines_needed

MOST = 6  # rows of a section
FIGURE = 14  # characters for a figure before a row
Section = list[list[Part]]


def below(facts: Section, sections: Sequence[Section], width: int, height: int) -> Section:
    """Return the paragraphs ``facts``, and below them those of ``sections`` that then fit completely into
    ``width`` x ``height`` characters, with an empty line between them."""
    made = facts
    for section in sections:
        longer = [*made, [], *section] if made else section
        if lines_needed(longer, width) <= height:
            made = longer
    return made


def sections(run: Run, places: Places) -> list[Section]:
    """Return what is known about the run, in sections. Each has a heading, and one row for each line of code,
    part of a step, program or variable. ``places`` shortens file names."""
    return [s for s in (_lines(run, places), _step(run, places), _programs(run), _arrays(run)) if s]


def _row(figure: str, parts: Sequence[Part]) -> list[Part]:
    """Return the row of a section: ``figure``, aligned to the right, then ``parts``."""
    return [(figure.rjust(FIGURE) + "  ", "figure"), *parts]


def _lines(run: Run, places: Places) -> Section:
    """Return a section with the at most MOST lines of code at which the main thread spent most time. Empty if
    this was not measured, or if no line is worth showing (``line_times.worth_showing``)."""
    times = times_of_lines.measured(run)
    if times is None:
        return []
    found = line_times.worth_showing(times_of_lines.by_line(run), times)[:MOST]
    rows = [_row(line_times.share(s.seconds, times), line_times.part(s, places)) for s in found]
    return [[("Time of the main thread, by line", "title")], *rows] if rows else []


def _step(run: Run, places: Places) -> Section:
    """Return what takes the time of a training step; empty if this is unknown."""
    found = step_time.step_seconds(run)
    if found is None:
        return []
    made: Section = [[("Time of a step", "title"), "  ", *steps.total(found)]]
    made += [_row(steps.share(p.seconds, found), steps.part(p, places)) for p in found.spent[: MOST - 1]]
    return [*made, _row(steps.share(found.rest, found), [(f"the rest: {steps.REST}", "dim")])]


def _programs(run: Run) -> Section:
    """Return the memory that the latest programs of the user's functions take; empty if unknown."""
    rows = []
    for f in run.functions.values():
        c = next((c for _, c in reversed(run.numbered(f)) if peak_bytes_of(c) is not None), None)
        memory = memory_of(c) if c is not None and f.user else None
        if c is not None and memory is not None:
            parts = ", ".join(f"{name} {size(n)}" for name, n in memory_parts(memory))
            name = (compilation_name(run, c), "name")
            rows.append((peak_bytes_of(c) or 0, [name, (f"  {parts}", "dim")]))
    rows.sort(key=lambda row: -row[0])
    return _titled(
        "Peak memory of programs, on one device", [_row(size(n), parts) for n, parts in rows[:MOST]]
    )


def _arrays(run: Run) -> Section:
    """Return the variables with the largest live arrays in the latest snapshot with arrays; empty if there is
    none."""
    main = run.main
    # At the end of a program, its arrays are often gone.
    event = next((e for e in reversed(main.snapshots) if e.count), None) if main is not None else None
    if main is None or event is None:
        return []
    latest = arrays.read(main, event)
    title = f"Live arrays {moment(latest)}: {count(latest.count, 'array')}, {total(latest)}"
    rows = [
        _row(size(s.bytes), [(s.name or UNNAMED, "name"), (f"  {count(s.count, 'array')}", "dim")])
        for s in arrays.sums(latest, arrays.tree_of)[:MOST]
    ]
    return _titled(title, rows)


def _titled(title: str, rows: Section) -> Section:
    """Return ``rows`` below the heading ``title``; empty if there are no rows."""
    return [[(title, "title")], *rows] if rows else []
