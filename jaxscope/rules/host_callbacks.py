"""Rule JX301: a program calls back into Python."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis.stablehlo.callbacks import Callback
from jaxscope.analysis.syntax import calls_from
from jaxscope.model import line_times, sources
from jaxscope.model.records import Compilation, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import LONG, users
from jaxscope.rules.finding_parts import evidence, running_share
from jaxscope.rules.line_lists import LINES
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Finding, Fix
from jaxscope.schema.libraries import keeps_callbacks
from jaxscope.schema.messages import (
    Message,
    Names,
    message,
)


@rule("JX301", "host-callback", NOTE)
def host_callback(run: Run) -> Iterator[Finding]:
    """Yield a finding for each function with callbacks in a program, except in branches of a conditional."""
    for p, f, texts in users(run):
        # The callbacks of one function of the program have one remedy, and are one finding.
        places: dict[Hashable, list[Callback]] = {}
        for c in texts.stablehlo.callbacks if texts.stablehlo is not None else ():
            if not c.in_branch:  # in a branch of a conditional, as for rare prints: not in each call
                place = (c.source.file, c.source.function) if c.source is not None else None
                places.setdefault(place, []).append(c)
        for found in places.values():
            found.sort(key=_line_of)
            first = found[0]
            text = message(
                "host-callback", function=f.display_name, often=_how_often(found), lines=_lines(found)
            )
            seen = dict.fromkeys(c.source for c in found)
            listed = [e for source in seen for e in evidence(p, _with_cache(p, text), source)]
            subject = (first.source, first.kind)
            looped = any(c.in_loop for c in found)
            seconds, measured = running_share(run, f, 1.0) if looped else None, line_times.measured(run)
            long = seconds is not None and measured is not None and seconds >= LONG * measured.seconds
            yield Finding(
                code="JX301",
                severity=WARNING if long else NOTE,
                certainty=CERTAIN,
                title=text,
                function=f.id,
                source=first.source,
                evidence=listed,
                fix=_instead_of(run, found),
                subject=subject,
                seconds=seconds if long else None,
                at_most=True,
            )


def _instead_of(run: Run, callbacks: Sequence[Callback]) -> Fix:
    """Return the advice about ``callbacks`` of one function of the program. It depends on the functions of
    JAX that make the callbacks."""
    kinds = {c.kind for c in callbacks}
    if kinds <= {"debug_callback", "debug_print"}:
        return Fix(message("fix-show-outside"), "call_back_less_often")
    if kinds != {"pure_callback"}:
        return Fix(message("fix-callback"), "call_back_less_often")
    at = callbacks[0].source
    source = sources.of(run)(at.file) if at is not None else None
    calls = calls_from(source, at.line) if at is not None else []
    methods = [k.value for c in calls for k in c.keywords if k.arg == "vmap_method"]
    one_by_one = any(isinstance(v, ast.Constant) and v.value == "sequential" for v in methods)
    vectorized = message("call-back-once") if one_by_one else None
    return Fix(message("fix-compute-in-jax", vectorized=vectorized), "compute_in_jax")


def _line_of(c: Callback) -> int:
    return c.source.line if c.source is not None else 0


def _lines(callbacks: Sequence[Callback]) -> Message | None:
    """Return the clause ``, from lines 13, 14 and 15`` for ``callbacks``, if they are on several
    lines; None if they are on one line."""
    lines = sorted({_line_of(c) for c in callbacks})
    return message("from-lines", numbers=Names(tuple(map(str, lines)), LINES)) if len(lines) > 1 else None


def _how_often(callbacks: Sequence[Callback]) -> Message | str:
    """Return how often one call of a program calls back into Python, as a part of a sentence: ``once``.
    ``callbacks`` are those of one function of the user in this program."""
    n = sum(c.count for c in callbacks)
    if all(c.in_loop and c.count == 1 for c in callbacks):
        return message("in-each-iteration")
    if any(c.in_loop for c in callbacks):
        return message("partly-in-a-loop", n=n)
    return message("so-often", n=n) if n > 1 else "once"


def _with_cache(p: Program, text: Message) -> Message:
    """Return ``text``, extended by a clause if JAX's persistent cache is on but cannot keep ``p``, because
    the version of JAX that compiled it does not cache programs with callbacks."""
    c: Compilation = p.compilations[-1]
    version = c.process.started.jax if c.process.started is not None else None
    on = c.compiled is not None and c.compiled.persistent_cache in ("hit", "miss")
    if not on or keeps_callbacks(version) is not False:
        return text
    return message("callback-not-cached", finding=text, version=version)
