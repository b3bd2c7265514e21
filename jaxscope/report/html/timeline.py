"""The HTML report's timeline, an SVG: when each function was traced, lowered and compiled, when the steps
were, and when the ranks (processes) ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxscope.model import payers, transfers
from jaxscope.model.causes import recompilations
from jaxscope.model.ranks import Job
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.timeline import PHASES, Lane, lanes
from jaxscope.present.functions import in_a_line, known_cause, phases
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, count, function_name, seconds
from jaxscope.report import sections
from jaxscope.report.html.markup import Html, el, joined, left_out, scrolling, swatch

UNITS = 10_000  # length of the time axis in units of the drawing; a shorter phase is drawn one unit long
HEIGHT = 20
MOST_LANES, MOST_MARKS, MOST_RANKS = 30, 150, 64
MOST_ROWS = 200  # compilations in the table
LABELS = 5
LATE = 0.1  # if the recording starts at least so many seconds after the program, the legend mentions it
LEGEND = {"trace": "trace", "lower": "lower", "compile": "compile", "hit": "from the persistent cache"}


def section(run: Run, job: Job | None, places: Places) -> Html | None:
    """Return the timeline of the run ``run``, and a table of its compilations. Return None if there is
    nothing to show.

    Args:
      job: all processes that were recorded together, of which ``run`` is one; each has a row. None: ``run``
        is the only one.
      places: shortens file names.
    """
    found = lanes(run)
    length = _length(run, found)
    if not found or length <= 0:
        return None
    shown = found[:MOST_LANES]
    rows: list[Html | None] = [_steps(run, length), *(_lane(run, lane, length, places) for lane in shown)]
    left = found[MOST_LANES:]
    rows.append(left_out(len(left), "function", f", {seconds(sum(x.seconds for x in left))}"))
    if job is not None:
        rows += _ranks(run, job, length)
    labels = [el("span", seconds(length * n / (LABELS - 1)) if n else "0 s") for n in range(LABELS)]
    legend = [
        joined([swatch(f"p-{name}"), f" {LEGEND[name]}  "])
        for k, name in enumerate(PHASES)
        if any((lane.spans[:, 2] == k).any() for lane in shown)
    ]
    if any(lane.recompiles for lane in shown):
        legend.append(joined([swatch("p-again"), " a recompile begins"]))
    return joined([
        el("p", *legend, class_="legend"),
        el("div", *(_button(*b) for b in BUTTONS), class_="controls", hidden=True),
        el(
            "div", *rows, el("div", *labels, class_="axis", aria_hidden="true"), class_="timeline",
            id="timeline", data_seconds=f"{length:.6f}", role="group",
            aria_label="Timeline of the run. Plus and minus zoom, the arrow keys move, 0 shows all of it.",
        ),
        el("p", _origin(run), class_="legend"),
        _table(run, places),
    ])  # fmt: skip


BUTTONS = (
    ("in", "+", "zoom in"), ("out", "-", "zoom out"), ("left", "←", "earlier"), ("right", "→", "later"),
    ("all", "all", "the whole run"),
)  # fmt: skip


def _button(action: str, sign: str, words: str) -> Html:
    return el("button", sign, type="button", data_zoom=action, aria_label=words, title=words)


def _length(run: Run, rows: Sequence[Lane]) -> float:
    """Return the length of the time axis in seconds, from the start of the recording to the last recorded
    event or the last phase in ``rows``, whichever is later."""
    ends = [float(lane.spans[:, 1].max()) / 1e9 for lane in rows if len(lane.spans)]
    return max([run.seconds_at(run.last_ns) or 0.0 if run.last_ns is not None else 0.0, *ends])


def _origin(run: Run) -> str:
    """Return a sentence that says which moment is 0 s on the time axis."""
    words = "0 s is when recording began"
    began, program = run.began_ns, run.program_began_ns
    if began is None or program is None or began - program < LATE * 1e9:
        return words
    return f"{words}: the program imported JAX, {seconds((began - program) / 1e9)} after it started"


def _at(when: float, length: float) -> int:
    """Return where the time ``when`` is on an axis of ``length`` seconds, from 0 to UNITS."""
    return round(min(max(when / length, 0.0), 1.0) * UNITS)


def _row(name: Html, right: str, words: str, *shapes: Html) -> Html:
    """Return one row of the timeline: its name, a drawing of ``shapes``, and the text ``right``. ``words``
    describe the row for screen readers."""
    drawing = el(
        "svg", el("title", words), *shapes, class_="lane", role="img", aria_label=words,
        viewBox=f"0 0 {UNITS} {HEIGHT}", preserveAspectRatio="none",
    )  # fmt: skip
    return el(
        "div", el("span", name, class_="name"), drawing, el("span", right, class_="figure"), class_="row"
    )


def _lane(run: Run, lane: Lane, length: float, places: Places) -> Html:
    """Return the row of one function (or of everything outside the user's functions): a block for each phase,
    and a tick for each compilation. ``length`` is that of the time axis in seconds."""
    f = lane.function
    words = function_name(f) if f is not None else sections.OUTSIDE.lower()
    again = (
        el("span", f" ▲ {lane.recompiles:,}", class_="warning", title="recompiles")
        if lane.recompiles
        else None
    )
    shapes = [_blocks(lane, k, length) for k in range(len(PHASES))]
    if f is not None:
        shapes += _marks(run, recompilations(f, run), [c for _, c in run.numbered(f)], length, places)
        described = words
    else:
        again_outside = payers.recompiled_outside(run)
        shapes += _marks(run, again_outside, sorted(again_outside, key=lambda c: c.t_ns), length, places)
        done = sum(member.compiled for member in lane.members)
        described = f"{words} ({count(len(lane.members), 'function')}, {count(done, 'compilation')})"
    described += f": {seconds(lane.seconds)}, {count(lane.recompiles, 'recompile')}"
    return _row(joined([words, again]), seconds(lane.seconds), described, *filter(None, shapes))


def _blocks(lane: Lane, phase: int, length: float) -> Html | None:
    """Return the blocks of one phase in one row of the timeline, as one SVG path. None if there are none.
    ``phase`` is its index in PHASES, ``length`` the length of the time axis in seconds."""
    spans = lane.spans[lane.spans[:, 2] == phase][:, :2] / 1e9
    blocks: list[list[int]] = []
    for begin, end in sorted((_at(b, length), _at(e, length)) for b, e in spans.tolist()):
        if blocks and begin <= blocks[-1][1]:
            blocks[-1][1] = max(blocks[-1][1], end)
        else:
            blocks.append([begin, max(end, begin + 1)])
    if not blocks:
        return None
    path = "".join(f"M{b} 4h{e - b}v14h{b - e}z" for b, e in blocks)
    return el("path", d=path, class_=f"p-{PHASES[phase]}")


def _marks(
    run: Run, recompiles: Sequence[Compilation], marked: Sequence[Compilation], length: float, places: Places
) -> list[Html]:
    """Return ticks (SVG), each with a tooltip, at the start of the first MOST_MARKS compilations in
    ``marked``. Ticks of those in ``recompiles`` have another color. ``length`` is that of the time axis in
    seconds."""
    again = {c.id for c in recompiles}
    ticks = []
    for c in marked[:MOST_MARKS]:
        begin = run.seconds_at(c.t_ns)
        if begin is not None:
            x = _at(begin, length)
            recompiled = c.id in again
            title = el("title", in_a_line(run, c, places, cause=recompiled))
            ticks.append(
                el(
                    "path",
                    title,
                    d=f"M{x} {0 if recompiled else 4}V18",
                    class_="tick again" if recompiled else "tick",
                )
            )
    return ticks


def _steps(run: Run, length: float) -> Html | None:
    """Return a row with ticks for the steps of the training loop that have an event in the log (the step's
    end, a compilation, a snapshot). None if none has. ``length`` is that of the time axis in seconds."""
    main = run.main
    if main is None:
        return None
    known = [(c.t_ns, c.step) for c in run.compilations.values() if c.process is main]
    known += [(snapshot.t_ns, snapshot.step) for snapshot in main.snapshots]
    known += [(end.event.t_ns, end.event.step) for end in main.step_times]
    first: dict[int, int] = {}
    for t_ns, step in known:
        if step is not None and (step not in first or t_ns < first[step]):
            first[step] = t_ns
    ticks: dict[int, int] = {}
    for step, t_ns in first.items():
        when = run.seconds_at(t_ns)
        if when is not None:
            ticks.setdefault(_at(when, length), step)
    if not ticks:
        return None
    shapes = [
        el("path", el("title", f"step {step:,}"), d=f"M{x} 8V18", class_="tick")
        for x, step in sorted(ticks.items())[: 4 * MOST_MARKS]
    ]
    total = max(transfers.steps(run, main) or 0, *first)
    words = f"{count(total, 'step')}; a tick is a step whose time was recorded"
    return _row(el("span", "steps", class_="dim", title=words), f"{total:,}", words, *shapes)


def _ranks(run: Run, job: Job, length: float) -> Iterable[Html | None]:
    """Yield a row for each rank (process) of ``job``: a bar from start to end, and ticks where it compiled
    programs for several processes. ``length`` is that of the time axis in seconds. The last item names how
    many ranks are left out; it is None if none is."""
    for rank in job.ranks[:MOST_RANKS]:
        begin = None if rank.began_ns is None else run.seconds_at(rank.began_ns)
        ended = rank.left_ns or rank.last_ns
        end = None if ended is None else run.seconds_at(ended)
        if begin is None or end is None:
            continue
        x, width = _at(begin, length), max(1, _at(end, length) - _at(begin, length))
        shapes = [el("path", d=f"M{x} 9h{width}v4h{-width}z", class_="p-rank")]
        for seen in rank.seen[:MOST_MARKS]:
            when = run.seconds_at(seen.t_ns)
            if when is not None:
                number = f" #{seen.number}" if seen.number is not None else ""
                title = el("title", f"rank {rank.number}: {seen.name}{number}, compiled at {seconds(when)}")
                shapes.append(el("path", title, d=f"M{_at(when, length)} 4V18", class_="tick"))
        words = f"rank {rank.number}: {count(rank.compiled, 'compilation')}, {seconds(rank.seconds)}"
        yield _row(el("span", f"rank {rank.number}"), seconds(rank.seconds), words, *shapes)
    yield left_out(len(job.ranks) - MOST_RANKS, "rank")


def _table(run: Run, places: Places) -> Html:
    """Return the compilations of the user's functions as an HTML table in order of time, for readers who
    cannot see the drawing."""
    numbered = [c for f in run.functions.values() if f.user for _, c in run.numbered(f)]
    numbered.sort(key=lambda c: (c.t_ns, c.id))
    heads = ("at", "compilation", "step", "time", "phases", "cause", "line")
    rows = []
    for c in numbered[:MOST_ROWS]:
        cells = (
            seconds(run.seconds_at(c.t_ns)),
            compilation_name(run, c),
            "" if c.step is None else f"{c.step:,}",
            seconds(c.seconds),
            ", ".join(phases(c)),
            known_cause(run, c),
            places.frame(c.site) or "?",
        )
        rows.append(el("tr", *(el("td", cell) for cell in cells)))
    more = left_out(len(numbered) - len(rows), "compilation")
    head = el("thead", el("tr", *(el("th", h, scope="col") for h in heads)))
    outside = sum(f.compiled for f in run.functions.values() if not f.user)
    others = f"; {outside:,} more outside your jitted functions are listed below" if outside else ""
    summary = el("summary", f"{count(len(numbered), 'compilation')} of your functions as a table{others}")
    return el("details", summary, scrolling(el("table", head, el("tbody", *rows))), more)
