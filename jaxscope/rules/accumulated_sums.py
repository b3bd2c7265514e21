"""Rule JX403: a loop computes a sum over the devices in each iteration, and only adds these sums up. One sum
over the devices after the loop would do."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import evidence
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.messages import Bytes, message

LEAST = 1 << 16  # bytes summed in one iteration; less, such as a loss, gives no finding


@rule("JX403", "sum-in-each-iteration", WARNING)
def sum_in_each_iteration(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for a in texts.stablehlo.accumulated if texts.stablehlo is not None else ():
            if a.bytes < LEAST:
                continue
            text = message("sum-in-each-iteration", function=f.display_name, bytes=Bytes(a.bytes))
            source = a.source or p.compilations[-1].site
            yield Finding(
                code="JX403",
                severity=WARNING,
                certainty=CERTAIN,
                title=text,
                function=f.id,
                source=source,
                evidence=evidence(p, text, source),
                fix=Fix(message("fix-sum-after-the-loop"), "sum_after"),
                subject=(source,),
            )
