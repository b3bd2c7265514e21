"""Format findings as table rows, and one finding in full: what was found, its fix, its evidence, and the page
about its rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from jaxscope.errors import UsageError
from jaxscope.present.findings import cost, evidence, fix_text, headline, mark, sentence
from jaxscope.present.findings import title as title_of
from jaxscope.present.text import Places, count, seconds
from jaxscope.rules import registry
from jaxscope.schema.findings import Finding
from jaxscope.tui.cells import Cell, Column, Part, number_column

_HEADING = re.compile(r"^## +")


def shown(findings: Sequence[Finding], hidden: Collection[str]) -> list[Finding]:
    """Return the findings to list: all findings whose code is not in ``hidden``, then the first finding of
    each hidden code. In its row, the user can show the hidden findings again."""
    first = {f.code: f for f in reversed(findings) if f.code in hidden}
    return [f for f in findings if f.code not in hidden] + [first[code] for code in sorted(first)]


def ignoring(codes: Collection[str]) -> str:
    """Return the configuration line that ignores these codes: ``ignore = ["JX101", "JX204"]``."""
    return f"ignore = [{', '.join(f'{code!r}' for code in sorted(codes))}]".replace("'", '"')


COST: Column[Finding] = number_column(
    "cost", lambda f: f.seconds, lambda s: [(seconds(s) if s else "", "bold")], 7
)


def columns(places: Places, findings: Sequence[Finding], hidden: Collection[str]) -> list[Column[Finding]]:
    """Return the columns of the table. The row of a code in ``hidden`` has the number of ``findings`` with
    this code."""
    counted = Counter(f.code for f in findings)

    def code(f: Finding, _: int) -> Cell:
        return [("○ ", "dim"), (f.code, "dim")] if f.code in hidden else [mark(f), f" {f.code}"]

    def title(f: Finding, _: int) -> Cell:
        return [(f"{count(counted[f.code], 'finding')} hidden", "dim")] if f.code in hidden else headline(f)

    return [
        Column("code", code, 7, order=lambda f: f.code),
        Column("finding", title, order=title_of),
        Column(
            "where",
            lambda f, _: [(places.frame(f.source) or "?", "dim")],
            18,
            order=lambda f: places.frame(f.source) or "",
            wide=100,
            unknown="no source line is known",
        ),
        COST,
    ]


def detail(f: Finding, places: Places, *, running: bool) -> list[list[Part]]:
    """Return paragraphs about a finding: what ``seen`` returns, then the documentation of its rule.
    ``places`` shortens file names. ``running``: whether the program still runs, so that the cost may grow."""
    return [*seen(f, places, running=running), [], *rule(f.code)]


def seen(f: Finding, places: Places, *, running: bool) -> list[list[Part]]:
    """Return paragraphs about a finding: what was found, its severity, certainty, cost and line, how to fix
    it, and the first 20 pieces of evidence. ``places`` shortens file names. ``running``: whether the program
    still runs, so that the cost may grow."""
    made: list[list[Part]] = [[mark(f), " ", (f.code, "name"), f"  {sentence(f)}"]]
    facts = [f.severity, f.certainty]
    if f.seconds:
        facts.append(f"costs {cost(f)}{' so far' if running else ''}")
    at = places.frame(f.source)
    if at:
        facts.append(at)
    made.append([(" · ".join(facts), "dim")])
    if fix := fix_text(f):
        made += [[], [("Fix  ", "good"), fix]]
    if f.evidence:
        made += [[], [("Evidence", "title"), ("  enter opens the first", "dim")]]
        for e in f.evidence[:20]:
            where = [f"step {e.step:,}" if e.step is not None else "", places.frame(e.source) or ""]
            around = ", ".join(w for w in where if w)
            made.append(["· ", evidence(e), (f"  ({around})" if around else "", "dim")])
        if len(f.evidence) > 20:
            made.append([(f"and {len(f.evidence) - 20:,} more", "dim")])
    return made


def rule(code: str) -> list[list[Part]]:
    """Return the documentation of the rule ``code`` as paragraphs; empty if there is no such rule. Each list
    item and each line of code is a paragraph of its own."""
    try:
        found = registry.find(code)
    except UsageError:
        return []
    made: list[list[Part]] = []
    paragraph: list[str] = []
    fenced = False

    def flush() -> None:
        if paragraph:
            made.append([" ".join(paragraph)])
            paragraph.clear()

    for line in found.doc.splitlines():
        if line.startswith("```"):
            flush()
            fenced = not fenced
        elif fenced:
            made.append([("  " + line, "dim")])
        elif _HEADING.match(line):
            flush()
            made += [[], [(_HEADING.sub("", line), "title")]]
        elif line.strip():
            if line.startswith("- "):  # each item of a list is a paragraph of its own
                flush()
            paragraph.append(line.strip())
        else:
            flush()
    flush()
    return made
