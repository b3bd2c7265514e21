"""Rule JX210: Jacobians in the mode of differentiation that needs more passes, and gradients that the program
or SciPy estimates from shifted arguments."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from jaxscope.analysis import jit_decorators
from jaxscope.analysis.programs import Texts
from jaxscope.model import line_times, sources
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import library_calls
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about, at_line, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.line_times import COMPILING
from jaxscope.schema.messages import message

REVERSE = frozenset({"jacrev", "jacobian"})
FORWARD = frozenset({"jacfwd"})
TIMES = 4  # a mode is reported if it needs at least this many times the passes of the other
BACKWARD = 4  # a gradient takes about as long as this many evaluations of its function
SHARE = 0.1  # of the measured time: a call of SciPy that takes less is not reported
FEWEST = 16  # passes: fewer run at once in little time


@rule("JX210", "jacobian-mode", WARNING)
def jacobian_mode(run: Run) -> Iterator[Finding]:
    """Yield findings about Jacobians in the mode that needs more passes, estimated gradients, and
    ``minimize`` without a gradient."""
    for f in run.functions.values():
        yield from _minimized(run, f)
    for p, f, texts in users(run):
        yield from _shifted(run, p, f, texts)
        for j in texts.stablehlo.jacobians if texts.stablehlo is not None else ():
            text = sources.of(run)(j.source.file)
            reverse = jit_decorators.calls_transformed(text, j.source.line, REVERSE)
            if reverse == jit_decorators.calls_transformed(text, j.source.line, FORWARD):
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
                **about(p, f, title, j.source),
                fix=Fix(message("fix-jacfwd" if reverse else "fix-jacrev"), "other_mode"),
                subject=(j.source,),
                seconds=running_share(run, f, 1 - j.others / j.passes),
                at_most=True,
            )


def _minimized(run: Run, f: Function) -> Iterator[Finding]:
    """Yield a finding if ``f`` is passed to SciPy's ``minimize`` without a gradient, and the line of this
    call took at least SHARE of the measured time."""
    measured = line_times.measured(run)
    if measured is None:
        return
    for c in f.compilations if f.user else ():
        at, parameters = c.site, _parameters(c)
        if at is None or c.entry != "call" or parameters <= BACKWARD:
            continue
        calls = library_calls.calls_of_scipy(sources.of(run)(at.file), at.line)
        here = [
            t for doing, t in line_times.entries(run) if doing != COMPILING and t.stack[0].place == at.place
        ]
        seconds = sum(t.seconds for t in here)
        if len(calls) != 1 or not library_calls.without_gradient(calls[0]):
            continue
        if c.missed is None or c.missed.column != calls[0].col_offset or seconds < SHARE * measured.seconds:
            continue
        title = message("minimize-without-gradient", function=f.display_name, evaluations=parameters + 1)
        yield Finding(
            code="JX210",
            severity=WARNING,
            certainty=LIKELY,
            **at_line(title, at),
            function=f.id,
            fix=Fix(message("fix-minimize-with-gradient", passed=_passed(calls[0], f)), "grad"),
            subject=(at,),
            seconds=seconds * (1 - BACKWARD / (parameters + 1)),
            at_most=True,
        )
        return


def _passed(call: ast.Call, f: Function) -> str:
    """Return the first argument of ``call`` as source if it is a name; else the name of ``f``."""
    return ast.unparse(call.args[0]) if call.args and isinstance(call.args[0], ast.Name) else f.display_name


def _parameters(c: Compilation) -> int:
    """Return the number of elements of the first array among the arguments of the compilation ``c``; 0 if
    there is none, or if the number is unknown."""
    shape = c.key.arguments[0].shape if c.key is not None and c.key.arguments else None
    sizes = [n for n in shape or () if isinstance(n, int)]
    return math.prod(sizes) if shape is not None and len(sizes) == len(shape) else 0


def _shifted(run: Run, p: Program, f: Function, texts: Texts) -> Iterator[Finding]:
    """Yield a finding for each gradient that ``p`` estimates from values at shifted arguments."""
    for s in texts.stablehlo.shifted if texts.stablehlo is not None else ():
        title = message("gradient-by-shifts", function=f.display_name, evaluations=s.evaluations)
        yield Finding(
            code="JX210",
            severity=WARNING if run.platform == "cpu" else NOTE,
            certainty=LIKELY,
            **about(p, f, title, s.source),
            fix=Fix(message("fix-grad"), "grad"),
            subject=(s.source,),
            seconds=running_share(run, f, 1 - BACKWARD / s.evaluations),
            at_most=True,
        )
