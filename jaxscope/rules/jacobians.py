"""Rule JX210: Jacobians in the mode of differentiation that needs more passes, and gradients that are
estimated from shifted arguments."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import jit_decorators
from jaxscope.analysis.programs import Texts
from jaxscope.model import sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import evidence, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import message

REVERSE = frozenset({"jacrev", "jacobian"})
FORWARD = frozenset({"jacfwd"})
TIMES = 4  # a mode is reported if it needs at least this many times the passes of the other
BACKWARD = 4  # a gradient takes about as long as this many evaluations of its function
FEWEST = 16  # passes: fewer run at once in little time


@rule("JX210", "jacobian-mode", WARNING)
def jacobian_mode(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        yield from _shifted(run, p, f, texts)
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


def _shifted(run: Run, p: Program, f: Function, texts: Texts) -> Iterator[Finding]:
    for s in texts.stablehlo.shifted if texts.stablehlo is not None else ():
        title = message("gradient-by-shifts", function=f.display_name, evaluations=s.evaluations)
        yield Finding(
            code="JX210",
            severity=WARNING if run.platform == "cpu" else NOTE,
            certainty=LIKELY,
            title=title,
            function=f.id,
            source=s.source,
            evidence=evidence(p, title, s.source),
            fix=Fix(message("fix-grad"), "grad"),
            subject=(s.source,),
            seconds=running_share(run, f, 1 - BACKWARD / s.evaluations),
            at_most=True,
        )
