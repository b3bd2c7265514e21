"""Rule JX203: a program computes something, but returns nothing."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Evidence, Finding, Fix
from jaxscope.schema.messages import (
    Count,
    message,
)


@rule("JX203", "no-result", WARNING)
def no_result(run: Run) -> Iterator[Finding]:
    """Yield a finding for each function all of whose programs compute something, but return nothing."""
    for f in run.functions.values():
        called = [c for c in f.compilations if c.entry == "call" and c.traced is not None] if f.user else []
        in_vain = [c for c in called if _in_vain(c)]
        if not in_vain or len(in_vain) < len(called):
            continue
        c = in_vain[-1]
        operations = Count((c.traced and c.traced.equations) or 0, "operation")
        yield Finding(
            code="JX203",
            severity=WARNING,
            certainty=CERTAIN,
            title=message("no-result", function=f.display_name, operations=operations),
            function=f.id,
            source=c.site,
            evidence=[Evidence(message("returns-nothing"), compilation=c.id, source=c.site)],
            fix=Fix(message("fix-return-values"), "return_values"),
        )


def _in_vain(c: Compilation) -> bool:
    """Return whether the program of the call ``c`` computes something, but returns nothing and has no
    effects."""
    t = c.traced
    return t is not None and t.out == [] and t.effects == [] and bool(t.equations)
