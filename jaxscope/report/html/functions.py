"""The HTML report's section on the user's functions: their work, recompiles, and cache keys side by side."""

from __future__ import annotations

from collections.abc import Sequence

from jaxscope.model.causes import compared
from jaxscope.model.records import Comparison, Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.functions import known_cause, nearest_name, phases, unusual
from jaxscope.present.keys import changed, key_rows
from jaxscope.present.text import Places, count, function_name, seconds
from jaxscope.report import function as in_full
from jaxscope.report import function_summary, sections
from jaxscope.report.html.markup import Html, el, fold, joined, left_out, lines, scrolling

MOST = 60
KEYS = 6  # keys side by side
ROWS = 40
VALUE = 160


def section(run: Run, places: Places, *, everything: bool) -> Html | None:
    """Return the HTML report's section on the user's functions, the slowest first. Return None if there are
    none. ``places`` shortens file names. ``everything`` (``--all``) lists all recompiles and causes of each
    function."""
    found = sections.ranked(run, lambda f: f.user and not sections.inside_others(f))
    if not found:
        return None
    shown = [entry(run, f, places, open_=n == 0, everything=everything) for n, f in enumerate(found[:MOST])]
    left = found[MOST:]
    more = left_out(len(left), "function", f", {seconds(sum(f.seconds for f in left))}")
    search = el("label", "containing ", el("input", type="search", data_search="function"))
    filters = el("div", search, class_="controls", hidden=True) if len(found) > 3 else None
    return joined([filters, *shown, more])


def entry(run: Run, f: Function, places: Places, *, open_: bool, everything: bool) -> Html:
    """Return one function as HTML: how often it was called and compiled, its recompiles, its cache keys and
    its shardings.

    Args:
      places: shortens file names.
      open_: whether the function is unfolded when the reader opens the page.
      everything: list all recompiles and causes (``--all``), but not all parts of the cache keys.
    """
    site = places.function(f)
    head = joined([
        el("span", seconds(f.seconds), class_="right bold"),
        el("span", function_name(f), class_="bold"),
        el("span", f"  {site}", class_="dim") if site else None,
    ])  # fmt: skip
    # Without the first line, which is in ``head``
    rest = list(function_summary.entry(run, f, places, everything=everything))[1:]
    numbered = run.numbered(f)
    body = [
        lines(rest),
        _keys(run, numbered, places),
        lines(in_full.shardings(run, f, numbered, None, places, everything=everything)),
    ]
    return fold(head, *body, open_=open_, class_="function")


def _keys(run: Run, numbered: Sequence[tuple[int, Compilation]], places: Places) -> Html:
    """Return tables of the recorded cache keys of one function: one with a column for each compilation (at
    most KEYS) and a row for each part of the key that differs, and a folded one with the parts that are equal
    in all.

    Args:
      numbered: (number, compilation) for each compilation of the function.
    """
    every = [(n, c, compared(run, c)) for n, c in numbered]
    keyed = [(n, c, k) for n, c, k in every if k is not None]
    if not keyed:
        return el("p", "cache key not recorded", class_="warning") if numbered else Html()
    shown = keyed if len(keyed) <= KEYS else [*keyed[: KEYS // 2], *keyed[-KEYS // 2 :]]
    rows = [key_rows(k.facts) for _, _, k in shown]
    same, varying = in_full.groups_of(rows, everything=False)
    table = _table(run, shown, rows, varying, places) if len(shown) > 1 else None
    left = len(keyed) - len(shown)
    more = el("p", f"{count(left, 'key')} left out", class_="dim") if left else None
    equal = [(label, in_full.text_of(names, rows[0])) for label, names in same]
    title = in_full.title_of_same(len(rows))
    rest = el(
        "tbody",
        *(el("tr", el("th", label, scope="row"), el("td", value[:VALUE])) for label, value in equal[:ROWS]),
    )
    below = (
        el("details", el("summary", title), scrolling(el("table", rest, class_="plain"))) if equal else None
    )
    return joined([table, more, below])


def _table(
    run: Run,
    shown: Sequence[tuple[int, Compilation, Comparison]],
    rows: Sequence[dict[str, str]],
    varying: in_full.Groups,
    places: Places,
) -> Html:
    """Return the table of the cache keys in ``shown``, one column each: first facts about the calls, then the
    parts of the key that differ (``varying``). A mark shows cells that differ from the key with which the
    call was compared."""
    head = el(
        "tr", el("th", "part of the key", scope="col"), *(el("th", f"#{n}", scope="col") for n, _, _ in shown)
    )
    facts = [
        ("cause", [known_cause(run, c) for _, c, _ in shown]),
        ("compared with", ["" if k.nearest is None else nearest_name(run, k.nearest) for _, _, k in shown]),
        ("step", ["" if c.step is None else f"{c.step:,}" for _, c, _ in shown]),
        ("time", [_time(c) for _, c, _ in shown]),
        ("called at", [places.frame(c.site) or "?" for _, c, _ in shown]),
    ]
    body = [
        el("tr", el("th", name, scope="row"), *(el("td", v) for v in values), class_="fact")
        for name, values in facts
        if any(values)
    ]
    for label, names in varying[:ROWS]:
        cells = []
        for (_, _, k), row in zip(shown, rows, strict=True):
            was = key_rows(k.nearest_facts) if k.nearest_facts is not None else row
            differs = any(changed(name, was, row) for name in names)
            value = in_full.text_of(names, row)[:VALUE]
            mark = (
                el("span", "≠ ", class_="warning", title="differs from the key it is compared with")
                if differs
                else None
            )
            cells.append(el("td", mark, value, class_="differs" if differs else None))
        body.append(el("tr", el("th", label, scope="row"), *cells))
    left = len(varying) - ROWS
    if left > 0:
        body.append(el("tr", el("td", f"and {left:,} more rows", colspan=len(shown) + 1, class_="dim")))
    caption = el("caption", "Cache keys side by side: what differs between the compilations")
    return scrolling(el("table", caption, el("thead", head), el("tbody", *body), class_="keys"))


def _time(c: Compilation) -> str:
    parts = phases(c)
    how = unusual(c)
    words = seconds(c.seconds) + (f" ({', '.join(parts)})" if len(parts) > 1 else "")
    return f"{words}, {how}" if how else words
