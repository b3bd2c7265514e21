"""The HTML report's section on compiled programs: their memory, the source lines with what each costs, and
drawings of which devices communicate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from jaxscope.analysis.hlo import axes, line_costs
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.model import measured
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.present.programs import (
    MEMORY_PARTS,
    bytes_within,
    in_short,
    memory_of,
    memory_parts,
    over_axes,
    sent_by_axes,
)
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, listed, size
from jaxscope.report import compiled_program, sections
from jaxscope.report.html import source
from jaxscope.report.html.markup import Html, el, fold, joined, left_out, lines, swatch, text
from jaxscope.schema.keys import Memory

MOST = 60
NAMED = 4  # compilations of one program that are named
MOST_DEVICES, MOST_ACROSS = 64, 16  # larger meshes are not drawn
STEP, RADIUS = 44, 13


def section(run: Run, places: Places, *, everything: bool) -> Html | None:
    """Return the HTML report's section on the programs of the user's functions, those of the slowest function
    first. Return None if none was recorded. ``places`` shortens file names. ``everything`` (``--all``)
    shortens fewer lists."""
    found: dict[str, list[Compilation]] = {}
    for f in sections.ranked(run, lambda f: f.user):
        for _, c in run.numbered(f):
            if c.program in run.programs and run.programs[c.program or ""].texts:
                found.setdefault(c.program or "", []).append(c)
    shown = [
        entry(run, id, cs, places, open_=n == 0, everything=everything)
        for n, (id, cs) in enumerate(list(found.items())[:MOST])
    ]
    return joined([*shown, left_out(len(found) - len(shown), "program")]) if shown else None


def entry(
    run: Run, id: str, compilations: Sequence[Compilation], places: Places, *, open_: bool, everything: bool
) -> Html:
    """Return one compiled program as HTML.

    Args:
      id: the id of the program.
      compilations: the compilations that produced the program.
      places: shortens file names.
      open_: whether the program is unfolded when the reader opens the page.
      everything: shorten fewer lists (``--all``).
    """
    c = compilations[0]
    texts = run.texts_of(run.programs[id])
    memory = memory_of(c)
    names = listed([compilation_name(run, c) for c in compilations], NAMED)
    head = joined(
        [el("span", names, class_="bold"), el("span", f"  {in_short(texts, memory)}", class_="dim")]
    )
    hlo = texts.hlo
    costs = None
    if hlo is not None:
        costs = source.with_costs(run, line_costs.of_program(hlo), places, measured.by_line(run))
    body = [
        lines(compiled_program.section(texts, memory, places, everything=everything)),
        _memory(memory) if memory is not None else None,
        joined(_meshes(hlo)) if hlo is not None else None,
        costs,
    ]
    return fold(head, *filter(None, body), open_=open_, class_="program")


def _memory(memory: Memory) -> Html | None:
    """Return a bar (SVG) that shows a program's memory on one device: arguments, results, temporaries, code.
    None if there is nothing to draw."""
    shared = MEMORY_PARTS["alias_bytes"]  # counted twice: as arguments and as results
    parts = [(name, n) for name, n in memory_parts(memory) if name != shared]
    total = sum(n for _, n in parts)
    if total <= 0 or any(n < 0 for _, n in parts):
        return None
    at = 0.0
    shapes, legend = [], []
    for k, (name, n) in enumerate(parts):
        width = 1000 * n / total
        words = f"{name} {size(n)}"
        shapes.append(
            el("rect", el("title", words), x=f"{at:.1f}", width=f"{width:.1f}", height=18, class_=f"part{k}")
        )
        legend.append(joined([swatch(f"part{k}"), f" {words}  "]))
        at += width
    if memory.alias_bytes:
        legend.append(joined([f" {size(memory.alias_bytes)} of them are {shared}: drawn twice"]))
    described = f"memory on one device: {', '.join(f'{name} {size(n)}' for name, n in parts)}"
    bar = el(
        "svg",
        *shapes,
        class_="bar",
        viewBox="0 0 1000 18",
        preserveAspectRatio="none",
        role="img",
        aria_label=described,
    )
    return joined([bar, el("p", *legend, class_="legend")])


def _meshes(hlo: Compiled) -> Iterator[Html]:
    """Yield HTML with a drawing of the device mesh for each set of mesh axes over which collectives
    communicate. It shows how much each device sends. A mesh that is large, or has more than two axes, is not
    drawn."""
    mesh = hlo.mesh or []
    large = [(name, n) for name, n in mesh if n > 1]
    drawable = (
        1 <= len(large) <= 2
        and math.prod(n for _, n in large) <= MOST_DEVICES
        and large[-1][1] <= MOST_ACROSS
    )
    if not drawable or not hlo.collectives:
        return
    yield el(
        "h3",
        "Collectives over the mesh ",
        el("span", " x ".join(f"{name}={n}" for name, n in mesh), class_="dim"),
    )
    figures = []
    for over, sent in sent_by_axes(hlo):
        kinds = {c.kind for c in hlo.collectives if c.over == over}
        words = f"{over_axes(over)}: {bytes_within(sent)} sent by each device in one call"
        used = axes.names(over)
        if not used & {name for name, _ in large}:
            continue
        named = f" ({', '.join(sorted(kinds))})" if kinds else ""
        figures.append(
            el("figure", _drawn(large, used, words), el("figcaption", words, el("span", named, class_="dim")))
        )
    yield el("div", *figures, class_="meshes")


def _drawn(large: Sequence[tuple[str, int]], used: set[str], words: str) -> Html:
    """Return a drawing (SVG) of the device mesh: a circle for each device, lines between devices that
    communicate.

    Args:
      large: (name, size) of each mesh axis with more than one device; one or two axes.
      used: the names of the axes over which the collectives communicate.
      words: a description of the drawing for screen readers.
    """
    (above, rows), (across, columns) = large if len(large) == 2 else [("", 1), large[0]]
    left, top = (60, 34) if above else (24, 34)

    def x(column: int) -> int:
        return left + RADIUS + column * STEP

    def y(row: int) -> int:
        return top + RADIUS + row * STEP

    path = ""
    if across in used:
        path += "".join(f"M{x(0)} {y(r)}H{x(columns - 1)}" for r in range(rows))
    if above and above in used:
        path += "".join(f"M{x(c)} {y(0)}V{y(rows - 1)}" for c in range(columns))
    shapes = [el("path", d=path, class_="link")] if path else []
    shapes.append(el("text", f"{across} →", x=x(0) - RADIUS, y=18, class_="axis-name"))
    if above:
        shapes.append(el("text", f"{above} ↓", x=2, y=y(0) + 4, class_="axis-name"))
    for row in range(rows):
        for column in range(columns):
            shapes.append(el("circle", cx=x(column), cy=y(row), r=RADIUS, class_="device"))
            shapes.append(
                el("text", text(row * columns + column), x=x(column), y=y(row) + 4, class_="number")
            )
    width, height = x(columns - 1) + 2 * RADIUS, y(rows - 1) + 2 * RADIUS
    return el(
        "svg",
        *shapes,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=words,
    )
