"""Rule JX403: each iteration of a loop sums values over the devices, and the loop only adds these sums up.
One sum over the devices after the loop would do."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import jit_decorators
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Message, message

SUMS = frozenset({"psum", "pmean"})
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
                **about(p, f, text, source),
                fix=Fix(message("fix-sum-after-the-loop", inserted=_inserted(run, source)), "sum_after"),
                subject=(source,),
            )


def _inserted(run: Run, line: Frame | None) -> Message | None:
    """Return a message that says what to change if JAX itself inserted the sum over the devices at ``line``
    (None: unknown). Return None if the line calls ``psum`` or ``pmean``."""
    source = sources.of(run)(line.file) if line is not None else None
    written = line is not None and jit_decorators.calls(source, line.line, SUMS)
    return None if written else message("for-an-inserted-sum")
