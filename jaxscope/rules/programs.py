"""Rules JX203 (programs without a result) and JX301 (host callbacks), and helpers for other rules: the parts
of findings about lines and about compiled programs."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypedDict

from jaxscope.analysis.programs import peak_bytes
from jaxscope.analysis.rewrap_site import calls_from
from jaxscope.analysis.stablehlo.callbacks import Callback
from jaxscope.model import line_times, sources
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import LONG, users
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import keeps_callbacks
from jaxscope.schema.messages import (
    Count,
    Message,
    Names,
    Words,
    message,
)

MIB = 1 << 20
SMALL = 0.05  # share of a program's peak memory below which an array does not matter
MOST = 3  # functions named in one title
LINES = 4  # line numbers in one title
SERIES = 3  # the fewest numbers that are written as ``14 to 16``


def line_numbers(lines: Iterable[int], most: int = LINES) -> Names:
    """Return line numbers for a message, with three or more numbers in a row as one part: ``14 to 17, 20 and
    2 more``. At most ``most`` parts are named; the lines of the others are counted."""
    parts: list[list[int]] = []
    for n in sorted(set(lines)):
        if parts and parts[-1][-1] == n - 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    names: list[str | Message] = []
    for part in parts:
        if len(part) >= SERIES and len(names) < most:
            names.append(message("lines-from-to", first=str(part[0]), last=str(part[-1])))
        else:
            names += [str(n) for n in part]
    return Names(tuple(names), most)


def on_lines(lines: Names) -> Message:
    """Return ``on line 16`` or ``on lines 16 and 17``."""
    one = len(lines.names) == 1
    return message("on-line", line=lines.names[0]) if one else message("on-lines", lines=lines)


def known_lines(at: Sequence[str | Frame], most: int) -> Message:
    """Return ``line 16`` or ``lines 16 and 17`` for the lines ``at``, of which at most ``most`` are named."""
    lines = Names(tuple(at), most, "lines")
    return message("lines-known" if len(at) > 1 else "line-known", lines=lines)


def evidence(p: Program, text: Words, source: Frame | None) -> list[Evidence]:
    """Return one piece of evidence, in a list: ``text`` at the line ``source``, with the latest compilation
    of ``p``."""
    c: Compilation = p.compilations[-1]
    return [Evidence(text, compilation=c.id, program=p.id, source=source)]


class _AtLine(TypedDict):
    title: Words
    source: Frame | None
    evidence: list[Evidence]


class _About(_AtLine):
    function: str


def at_line(text: Words, line: Frame | None, c: Compilation | None = None) -> _AtLine:
    """Return fields of a ``Finding`` about the line ``line``: its title ``text``, which is also its evidence,
    observed in the compilation ``c``; None: the finding is about no compilation."""
    seen = Evidence(text, compilation=c.id if c is not None else None, source=line)
    return {"title": text, "source": line, "evidence": [seen]}


def about(p: Program, f: Function, text: Words, line: Frame | None) -> _About:
    """Return fields of a ``Finding`` about the program ``p`` of the function ``f``: its title ``text``, which
    is also its evidence, and the line ``line``."""
    return {"title": text, "function": f.id, "source": line, "evidence": evidence(p, text, line)}


def and_more(arrays: int) -> Message | None:
    """Return `` and 2 other arrays`` for a message about 3 arrays that names one of them; None for 1."""
    return message("and-more", others=Count(arrays - 1, "other array")) if arrays > 1 else None


def mesh_axes(axes: Sequence[str]) -> Message:
    """Return ``mesh axis 'data'`` or ``mesh axes 'data' and 'model'``."""
    return message("mesh-axis" if len(axes) == 1 else "mesh-axes", names=Names(tuple(map(repr, axes))))


def small(p: Program) -> float:
    """Return the number of bytes below which an array does not matter to the peak memory of ``p``; 0 if that
    memory is unknown."""
    compiled = p.compilations[-1].compiled
    peak = peak_bytes(compiled.memory) if compiled is not None and compiled.memory is not None else None
    return SMALL * (peak or 0)


def running_share(run: Run, f: Function, share: float) -> float | None:
    """Return ``share`` of the seconds in which the main thread called ``f`` or waited for its results. Return
    None if these seconds were not measured, or with too few samples."""
    seconds = line_times.running_seconds(run, f)
    return share * seconds if seconds is not None else None


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
