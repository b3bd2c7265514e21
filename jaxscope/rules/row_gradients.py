"""Rule JX214: a step of gradient descent for a whole table, although the gradient is 0 in most rows."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis.stablehlo.row_gradients import RowGradient
from jaxscope.model.run import Run
from jaxscope.rules.each_program import takes_time, users
from jaxscope.rules.finding_parts import about, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Count, Percent, message

SHARE, MUCH = 0.2, 0.5  # of the program's operations: for a note, for a warning


@rule("JX214", "gradient-of-table", WARNING)
def gradient_of_table(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        lines: dict[Frame | None, list[RowGradient]] = {}
        for one in texts.stablehlo.row_gradients if texts.stablehlo is not None else ():
            lines.setdefault(one.source, []).append(one)
        for line, tables in lines.items():
            operations = sum(one.operations for one in tables)
            shares = [one.share for one in tables if one.share is not None]
            share = min(1.0, sum(shares))
            if len(shares) < len(tables) or share < SHARE or not takes_time(run, p, f, operations):
                continue
            largest = tables[0]
            text = message(
                "gradient-of-table",
                function=f.display_name,
                table=largest.shape,
                used=largest.used,
                rows=largest.rows,
                more=message("more-tables", tables=Count(len(tables) - 1, "more table"))
                if len(tables) > 1
                else None,
                share=Percent(share),
            )
            at = line or p.compilations[-1].site
            yield Finding(
                code="JX214",
                severity=WARNING if share >= MUCH else NOTE,
                certainty=LIKELY,
                **about(p, f, text, at),
                fix=Fix(message("fix-gradient-of-rows"), "rows"),
                subject=(line,),
                seconds=running_share(run, f, share),
                at_most=True,
            )
