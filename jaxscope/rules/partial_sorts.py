"""Rule JX209: programs that sort, or shuffle, many elements and use few of them."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis.stablehlo.partial_sorts import PartialSort
from jaxscope.model.records import Function
from jaxscope.model.run import Run
from jaxscope.rules.each_program import takes_time, users
from jaxscope.rules.finding_parts import about, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, WARNING, Finding, Fix
from jaxscope.schema.messages import Count, Message, message

# Elements that one call sorts: fewer take a few milliseconds at most. MANY is for a call that is not
# repeated.
LEAST, MANY = 1 << 16, 1 << 22


@rule("JX209", "sort-for-few", WARNING)
def sort_for_few(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        largest: dict[object, PartialSort] = {}  # by line
        for s in texts.stablehlo.partial_sorts if texts.stablehlo is not None else ():
            known = largest.get(s.source)
            if known is None or known.rows * known.length < s.rows * s.length:
                largest[s.source] = s
        for s in largest.values():
            elements = s.rows * s.length
            if elements < LEAST or (elements < MANY and not takes_time(run, p, f)):
                continue
            text = _title(f, s)
            line = s.source or p.compilations[-1].site
            yield Finding(
                code="JX209",
                severity=WARNING,
                certainty=CERTAIN if s.used else LIKELY,
                **about(p, f, text, line),
                fix=Fix(_instead(s), "top_k", {"k": s.used}),
                subject=(line,),
                seconds=running_share(run, f, 1.0),
                at_most=True,
            )


def _title(f: Function, s: PartialSort) -> Message:
    rows = message("rows-of", rows=Count(s.rows, "row")) if s.rows > 1 else None
    elements = Count(s.length, "element")
    if not s.used:
        return message("sort-for-positions", function=f.display_name, rows=rows, elements=elements)
    return message(
        "shuffle-for-few" if s.shuffles else "sort-for-few",
        function=f.display_name,
        rows=rows,
        elements=elements,
        used=s.used,
        each=message("in-each-row") if s.rows > 1 else None,
    )


def _instead(s: PartialSort) -> Message:
    if not s.used:
        return message("fix-count-before")
    if s.shuffles:
        return message("fix-draw-few", used=s.used, length=str(s.length))
    return message("fix-maximum") if s.used == 1 else message("fix-top-k", used=s.used)
