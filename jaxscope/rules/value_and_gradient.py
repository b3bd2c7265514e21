"""The part of rule JX205 about a function that is jitted once for its value and once for its gradient."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis.syntax import last_name
from jaxscope.model import line_times, sources
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import library_calls
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.line_times import CALLING, OPERATIONS, WAITING
from jaxscope.schema.messages import message

GRADIENTS = {
    "jax.grad": "jax.value_and_grad",
    "equinox.filter_grad": "equinox.filter_value_and_grad",
    "flax.nnx.grad": "nnx.value_and_grad",
}
SHARE, MUCH = 0.05, 0.15  # shares of the measured time: a note, a warning


def in_a_minimization(run: Run) -> Iterator[Finding]:
    """Yield a finding for each function that a program passes to SciPy together with its gradient, each
    jitted on its own: ``minimize(fun, x0, jac=jac)``. A function that takes less than SHARE of the measured
    time gets no finding."""
    measured = line_times.measured(run)
    if measured is None:
        return
    functions = [f for f in run.functions.values() if f.user and f.compilations]
    for value in functions:
        v = value.compilations[-1]
        seconds = seconds_at(run, v.site)
        if not seconds or seconds < SHARE * measured.seconds:
            continue
        for gradient in functions:
            instead = of_gradient(value, gradient)
            g = gradient.compilations[-1]
            minimize = _minimize(run, v.site, g.site) if instead is not None else None
            if minimize is None or _types(v) != _types(g):
                continue
            name = value.display_name
            text = message("value-and-gradient", function=name, line=v.site, gradient=g.site)
            words = message("fix-value-and-grad-for-scipy", function=name, transform=instead, call=minimize)
            yield Finding(
                code="JX205",
                severity=WARNING if seconds >= MUCH * measured.seconds else NOTE,
                certainty=LIKELY,
                title=text,
                function=value.id,
                source=v.site,
                evidence=[Evidence(text, compilation=c.id, program=c.program, source=c.site) for c in (v, g)],
                fix=Fix(words, "value_and_grad", {"transform": instead}),
                seconds=seconds,
                timed=True,
            )


def of_gradient(value: Function, gradient: Function) -> str | None:
    """Return the transform that computes a function and its gradient at once (``jax.value_and_grad``), if the
    jitted function ``gradient`` is the gradient of the jitted function ``value``. Return None if it is
    not."""
    places = {(f.seen.file, f.seen.line, f.seen.name) for f in (value, gradient)}
    for transform, instead in GRADIENTS.items() if len(places) == 1 else ():
        others = [w for w in _transforms(gradient) if w != transform]
        if gradient.seen.wrappers.count(transform) == 1 and others == _transforms(value):
            return instead
    return None


def seconds_at(run: Run, line: Frame | None) -> float | None:
    """Return the seconds that the main thread spent at ``line`` in calls of jitted functions, in operations
    outside jit and in waits for values. Return None if no such seconds were measured."""
    spent = [
        s.seconds
        for s in line_times.by_line(run)
        if same_line(s.line, line)
        if s.doing in (CALLING, OPERATIONS, WAITING)
    ]
    return sum(spent) if spent else None


def _transforms(f: Function) -> list[str]:
    """Return the wrappers of the jitted function ``f``, such as ``jax.grad``, without jit itself."""
    return [w for w in f.seen.wrappers if w not in ("jaxlib.PjitFunction", "jax.jit")]


def _types(c: Compilation) -> list[tuple[object, object]] | None:
    return [(leaf.shape, leaf.dtype) for leaf in c.key.arguments] if c.key is not None else None


def _minimize(run: Run, value: Frame | None, gradient: Frame | None) -> str | None:
    """Return the name of SciPy's function to which one call passes both the function that contains the line
    ``value`` and the function that contains the line ``gradient``: ``minimize``. Return None if there is no
    such call."""
    if value is None or gradient is None or value.file != gradient.file:
        return None
    call = library_calls.called_by_scipy(sources.of(run)(value.file), value.line)
    named = gradient.function.rpartition(".")[2]
    given = [*call.args, *(k.value for k in call.keywords)] if call is not None else []
    if call is None or not any(last_name(argument) == named for argument in given):
        return None
    return last_name(call.func)
