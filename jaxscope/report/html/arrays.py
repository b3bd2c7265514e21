"""The HTML report's section on live arrays: the variables with the largest arrays, the bytes on each device,
and which device holds which slice of an array."""

from __future__ import annotations

from jaxscope.model import arrays as model
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.run import Run
from jaxscope.present.arrays import forms, placement, slices, spread
from jaxscope.present.text import Places, size
from jaxscope.report import arrays, shards
from jaxscope.report.html.markup import Html, el, joined, lines, scrolling, spans
from jaxscope.schema.keys import Sharding

MESHES = 6
MOST_ROWS, MOST_COLUMNS = 32, 16
MOST_DEVICES = 64
FILLS = 8


def section(run: Run, places: Places, *, everything: bool) -> Html | None:
    """Return the section on live arrays, with the same snapshot as the text report. Return None if the text
    report has no such section. ``places`` shortens file names. ``everything`` (``--all``) lists all
    arrays."""
    written = lines(arrays.section(run, places, everything=everything), below="Live arrays")
    if not written:
        return None
    s = model.fullest(model.of_main(run))
    if s is None:
        return written
    drawn = [mesh(g, sharding, shape) for g, sharding, shape in list(arrays.layouts(s))[:MESHES]]
    return joined(
        [
            written,
            _devices(s),
            *([el("h3", "Which device holds which slice")] if drawn else []),
            *filter(None, drawn),
        ]
    )


def _devices(s: Snapshot) -> Html | None:
    """Return a folded table, below a summary, with the bytes of the live arrays on each device, also as bars.
    None if fewer than two or more than MOST_DEVICES devices have arrays."""
    used = [(d, n) for d, n in sorted(s.by_device.items()) if n > 0]
    if not 2 <= len(used) <= MOST_DEVICES:
        return None
    most = max(n for _, n in used)
    rows = []
    for device, n in used:
        bar = el("rect", width=f"{1000 * n / most:.0f}", height=10, class_="p-compile")
        drawing = el(
            "svg",
            bar,
            class_="bar thin",
            viewBox="0 0 1000 10",
            preserveAspectRatio="none",
            aria_hidden="true",
        )
        rows.append(
            el(
                "tr",
                el("th", f"{device}", scope="row"),
                el("td", size(n), class_="figure"),
                el("td", drawing, class_="wide"),
            )
        )
    head = el("tr", *(el("th", h, scope="col") for h in ("device", "bytes", "")))
    summary = el("summary", f"Bytes on {len(used)} devices: {spread(n for _, n in used)}")
    return el("details", summary, el("table", el("thead", head), el("tbody", *rows), class_="devices"))


def mesh(g: Group, sharding: Sharding, shape: list[int]) -> Html | None:
    """Return a table that shows which device of the mesh holds which slice of an array. Devices with equal
    slices have the same color. Return None if the slices are unknown, or if fewer than two devices have a
    part of the array.

    Args:
      g: arrays that are alike; the table shows one of them.
      sharding, shape: the sharding and the shape of these arrays.
    """
    grid = shards.grid_of(sharding, shape)
    if grid is None:
        return None
    parts: dict[tuple[int, ...], int] = {}
    body = []
    for label, cells in grid.rows[:MOST_ROWS]:
        tds = []
        for c in cells[:MOST_COLUMNS]:
            part = parts.setdefault(c.part, len(parts))
            tds.append(
                el(
                    "td",
                    el("span", f"{c.device}", class_="bold"),
                    f" {slices(c, shape)}",
                    class_=f"shard{part % FILLS}",
                )
            )
        body.append(el("tr", el("th", label, scope="row"), *tds))
    heads = (
        el("thead", el("tr", el("td"), *(el("th", h, scope="col") for h in grid.heads[:MOST_COLUMNS])))
        if grid.heads
        else None
    )
    caption = el("caption", el("span", g.path or "", class_="bold"), f"  {forms(g)}  ", spans(placement(g)))
    cut = len(grid.rows) > MOST_ROWS or len(grid.heads) > MOST_COLUMNS
    more = el("p", f"{grid.devices:,} devices: not all are shown", class_="dim") if cut else None
    return joined([scrolling(el("table", caption, heads, el("tbody", *body), class_="mesh")), more])
