"""Show lines of the user's source in the HTML report: the lines around a finding, and the lines that cost
something in a compiled program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxscope.analysis.hlo.line_costs import LineCost, Place
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.present.text import Places, short_seconds, size
from jaxscope.report.html.markup import Html, el, joined, left_out, scrolling, verbatim
from jaxscope.schema.keys import Frame

AROUND = 2  # lines that are shown above a line, and as many below it
LONGEST = 200  # longer lines are cut
MOST = 40  # lines with a cost that are shown for each program
HEADS = ("fusions", "bytes of fusions", "flops", "collectives", "sent")
MEASURED = "measured in a step"
PREFIXES = ("", "k", "M", "G", "T", "P", "E")
KINDS = HEADS.index("collectives")


def around(run: Run, frame: Frame | None) -> Html | None:
    """Return some source lines as HTML: the line of ``frame``, with a mark, and the lines around it. Return
    None if ``frame`` is None or its line cannot be read."""
    found = _lines(run, frame.file) if frame is not None else []
    if frame is None or not 1 <= frame.line <= len(found):
        return None
    return el(
        "pre",
        *_numbered(found, range(frame.line - AROUND, frame.line + AROUND + 1), frame.line),
        class_="source",
    )


def _numbered(lines: Sequence[str], numbers: Iterable[int], marked: int) -> Iterable[Html]:
    """Yield the lines with the given ``numbers``, each with its number. The line ``marked`` has a mark."""
    for n in numbers:
        if 1 <= n <= len(lines):
            mark = el("span", "▸ " if n == marked else "  ", class_="warning", aria_hidden="true")
            number = el("span", f"{n:>4}  ", class_="dim")
            code = el("mark" if n == marked else "span", verbatim(lines[n - 1] or " "))
            yield el("code", mark, number, code)


def with_costs(
    run: Run, costs: Mapping[Place, LineCost], places: Places, measured: Mapping[Place, float]
) -> Html | None:
    """Return tables of the source lines that cost something in a compiled program, and of the lines around
    them, with the flops, bytes and collectives of each line. If a file cannot be read, its table lacks the
    source text. Return None if no line costs anything.

    Args:
      costs: (file, line) -> cost in the compiled program.
      places: shortens file names.
      measured: (file, line) -> measured seconds in one step; empty: nothing was measured.
    """
    ranked = sorted(costs, key=lambda p: (-(costs[p].flops or 0), -(costs[p].moved_bytes or 0), p))
    shown = ranked[:MOST]
    tables = [
        _table(
            _lines(run, file),
            file,
            {line: costs[f, line] for f, line in shown if f == file},
            places,
            {line: spent for (f, line), spent in measured.items() if f == file},
        )
        for file in sorted({f for f, _ in shown}, key=lambda f: -sum(g == f for g, _ in shown))
    ]
    return joined([*tables, left_out(len(ranked) - len(shown), "line")]) if tables else None


def _table(
    lines: Sequence[str],
    file: str,
    costs: Mapping[int, LineCost],
    places: Places,
    measured: Mapping[int, float],
) -> Html:
    """Return a table of the lines of one ``file`` that have ``costs``, with the lines directly above and
    below them. ``lines`` are all lines of the file; ``costs`` and ``measured`` map the number of a line to
    its cost and to its measured seconds."""
    near = {n for line in costs for n in range(line - 1, line + 2) if 1 <= n <= len(lines)}
    wanted = {n for n in near if lines[n - 1].strip()} | set(costs)
    figures = {line: _figures(cost) for line, cost in costs.items()}
    if measured:
        for line, cells in figures.items():
            cells.append(short_seconds(measured[line]) if line in measured else "")
    heads = (*HEADS, MEASURED) if measured else HEADS
    kept = [k for k in range(len(heads)) if any(cells[k] for cells in figures.values())]
    rows, last = [], 0
    for n in sorted(wanted):
        if last and n > last + 1:
            rows.append(el("tr", el("td", "⋮", colspan=len(kept) + 2, class_="dim")))
        last = n
        cells = figures.get(n, [""] * len(heads))
        rows.append(
            el(
                "tr",
                *(el("td", cells[k], class_=None if k == KINDS else "figure") for k in kept),
                el("th", f"{n}", scope="row", class_="dim figure"),
                el("td", el("code", lines[n - 1] if n <= len(lines) else "")),
                class_=None if n in costs else "beside",
            )
        )
    caption = el(
        "caption",
        f"{places.file(file)}, cost of one call on one device by line; a fusion counts for each line"
        " of your code that is in it",
    )
    head = el("tr", *(el("th", h, scope="col") for h in (*(heads[k] for k in kept), "line", "source")))
    return scrolling(el("table", caption, el("thead", head), el("tbody", *rows), class_="source"))


def _figures(cost: LineCost) -> list[str]:
    """Return the cells for one line in the order of HEADS: fusions, bytes, flops, collectives, bytes sent."""
    kinds = ", ".join(kind if n == 1 else f"{n}x {kind}" for kind, n in sorted(cost.collectives.items()))
    return [
        f"{cost.fusions:,}" if cost.fusions else "",
        "" if cost.moved_bytes == 0 else size(cost.moved_bytes),
        "?" if cost.flops is None else _flops(cost.flops) if cost.flops else "",
        kinds,
        size(cost.sent_bytes) if kinds else "",
    ]


def _flops(n: int) -> str:
    """Return a number of operations as short text: 432000000 -> ``432 M``, 512 -> ``512``."""
    power = min((len(str(n)) - 1) // 3, len(PREFIXES) - 1)
    return f"{n / 1000**power:.{max(0, 2 - (len(str(n)) - 1) % 3)}f} {PREFIXES[power]}" if power else f"{n}"


def _lines(run: Run, file: str) -> list[str]:
    """Return the lines of a source file, each cut to LONGEST characters. Empty if the file cannot be read."""
    text = sources.of(run)(file)
    return [] if text is None else [line[:LONGEST].expandtabs(4) for line in text.split("\n")]
