"""Rule JX210: Jacobians in the mode of differentiation that needs more passes."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import jit_decorators
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import evidence, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import message

REVERSE = frozenset({"jacrev", "jacobian"})
FORWARD = frozenset({"jacfwd"})
TIMES = 4  # a mode that needs so many times as many passes is reported
FEWEST = 16  # passes: fewer run at once in little time


@rule("JX210", "jacobian-mode", WARNING)
def jacobian_mode(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for j in texts.stablehlo.jacobians if texts.stablehlo is not None else ():
            text = sources.of(run)(j.source.file)
            reverse = jit_decorators.calls(text, j.source.line, REVERSE)
            if reverse == jit_decorators.calls(text, j.source.line, FORWARD):
                continue  # neither, or both: a Hessian
            if j.passes < FEWEST or j.passes < TIMES * j.others:
                continue
            title = message(
                "jacobian-in-reverse" if reverse else "jacobian-forward",
                function=f.display_name,
                passes=j.passes,
                others=j.others,
            )
            yield Finding(
                code="JX210",
                severity=WARNING if run.platform == "cpu" else NOTE,  # accelerators run passes in parallel
                certainty=LIKELY,
                title=title,
                function=f.id,
                source=j.source,
                evidence=evidence(p, title, j.source),
                fix=Fix(message("fix-jacfwd" if reverse else "fix-jacrev"), "other_mode"),
                subject=(j.source,),
                seconds=running_share(run, f, 1 - j.others / j.passes),
                at_most=True,
            )
