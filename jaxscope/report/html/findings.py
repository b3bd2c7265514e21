"""The HTML report's section on findings: what was found, its line and cost, what to change, and the
evidence."""

from __future__ import annotations

from collections.abc import Sequence

from jaxscope.model.run import Run
from jaxscope.present.findings import cost, evidence, fix_text, headline, mark, place, sentence, stable_id
from jaxscope.present.text import Places
from jaxscope.report import sections
from jaxscope.report.html import source
from jaxscope.report.html.markup import Html, el, joined, left_out, spans, text
from jaxscope.schema.findings import ERROR, NOTE, WARNING, Finding

OPEN = 3  # findings that are open at first
MOST = 200
SOURCES = 40  # findings with lines of source
EVIDENCE = 12
SEVERITIES = {ERROR: "errors", WARNING: "warnings", NOTE: "notes"}


def section(run: Run, findings: Sequence[Finding], places: Places) -> Html:
    """Return the HTML report's section on findings: the first MOST (200), and boxes that filter them. The
    HTML id of a finding stays the same in reports of later runs, so links to the finding stay valid.
    ``places`` shortens file names."""
    counts = {s: sum(f.severity == s for f in findings) for s in SEVERITIES}
    boxes = [
        el("label", el("input", type="checkbox", checked=True, data_severity=s), f" {SEVERITIES[s]} ({n:,})")
        for s, n in counts.items()
        if n
    ]
    search = el("label", "containing ", el("input", type="search", data_search="finding"))
    filters = el("div", *boxes, search, class_="controls", hidden=True)
    shown = [entry(run, f, places, n, open_=n < OPEN) for n, f in enumerate(findings[:MOST])]
    more = left_out(len(findings) - len(shown), "finding")
    return joined([filters if len(findings) > OPEN else None, *shown, more])


def entry(run: Run, f: Finding, places: Places, n: int, *, open_: bool) -> Html:
    """Return one finding as HTML.

    Args:
      places: shortens file names.
      n: the position of the finding in the report, from 0. Only findings before SOURCES show their source
        lines.
      open_: whether the finding is unfolded when the reader opens the page.
    """
    spent = el("span", cost(f), class_="right bold") if f.seconds else None
    where = place(f, places, shortened=True)
    summary = el(
        "summary", spent, spans([mark(f)]), " ", el("span", f.code, class_="bold"), " ", headline(f),
        el("span", f" ({where})", class_="dim") if where else None,
    )  # fmt: skip
    body = [
        el("p", sentence(f)) if sentence(f) != headline(f) else None,
        fix(f),
        source.around(run, f.source) if n < SOURCES else None,
        _evidence(f, places),
        el("p", "explained by the command ", el("code", f"jaxscope rule {f.code}"), class_="command"),
    ]
    return el(
        "details", summary, el("div", *body, class_="body"), open=open_, class_=f"finding {_severity(f)}",
        id=stable_id(f), data_severity=_severity(f),
    )  # fmt: skip


def _severity(f: Finding) -> str:
    return f.severity if f.severity in SEVERITIES else WARNING


def fix(f: Finding) -> Html | None:
    """Return a paragraph that says what to change. Return None if the finding has no fix."""
    words = fix_text(f)
    return (
        None
        if words is None
        else el("p", el("span", "→ ", class_="good", aria_hidden="true"), words, class_="fix")
    )


def _evidence(f: Finding, places: Places) -> Html | None:
    """Return a list of the observations that support the finding. None if there are none."""
    if not f.evidence:
        return None
    items = []
    for e in f.evidence[:EVIDENCE]:
        around = ", ".join(
            filter(None, (places.inside(e.source), None if e.step is None else f"step {e.step:,}"))
        )
        items.append(el("li", evidence(e), el("span", f" ({around})", class_="dim") if around else None))
    left = len(f.evidence) - len(items)
    if left > 0:
        items.append(el("li", f"and {left:,} more", class_="dim"))
    return joined([el("h3", "Evidence"), el("ul", *items)])


def first(run: Run, f: Finding, places: Places) -> Html:
    """Return the most important finding ``f`` as HTML for the top of the page: what was found, its source
    line and what to change. ``places`` shortens file names."""
    where = places.inside(f.source)
    return el(
        "div",
        el("span", f"costs {cost(f)}", class_="right bold") if f.seconds else None,
        el("p", spans([mark(f)]), " ", el("a", f.code, href=f"#{stable_id(f)}"), " ", text(sentence(f))),
        el("p", where, class_="dim") if where else None,
        source.around(run, f.source),
        fix(f),
        class_=f"first {_severity(f)}",
    )


def without_finding(run: Run, places: Places) -> Html | None:
    """Return HTML about lines of code (at most OPEN) whose compilations took at least a tenth of the compile
    time although no finding is about them, with their source. Return None if there are no such lines.
    ``places`` shortens file names."""
    found = sections.without_finding(run)
    if not found:
        return None
    entries = [
        joined(
            [
                el("p", f"{names} ", el("span", cost, class_="bold"), f" ({places.inside(entry.line)})"),
                source.around(run, entry.line),
            ]
        )
        for entry, names, cost in found[:OPEN]
    ]
    cache = [el("p", f"{words}: ", el("code", code)) for words, code in sections.cache_advice(run)]
    words = (
        "Long compilations that no finding is about. Most are those of first calls, which the first run"
        " of a program cannot avoid. Each took at least a tenth of the compile time."
    )
    return joined([el("p", words), *entries, *cache])
