"""JX132 and JX133: compilations that are many rather than slow."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from jaxscope.analysis import jit_decorators
from jaxscope.model import causes, sources
from jaxscope.model.causes import recompilations
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import recompiles
from jaxscope.rules.registry import rule
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import CERTAIN, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS, TRACED_WHOLE, WRAPPER_ROOTS

WINDOW = 50  # calls looked back on
FEWEST = 10  # recompiles that make an alarm
MINUTE_NS = 60_000_000_000
BARRAGE = 20  # eager compilations from one line
SMALL_S = 1.0  # a compilation that takes longer is none of a barrage: a library's scan or loop
THROUGH_LIBRARY = "jit what this line calls, {how}; not the lines of yours that {library} calls"
GROWING = (
    "where what {library} is given here changes its size from call to call, give it one size: pad the "
    "data, with a mask"
    " or weights for what is padding, and make what computes with them once; where it does not, nothing"
)
READING = (
    "pass NumPy arrays (np.asarray(x)) to {library}, where it only reads them; where it computes with JAX "
    "itself, jit what"
    " this line calls, if it can be traced"
)
AROUND = "put the computation around this line into one jax.jit, or do it in NumPy"
MOST_SIZES = 64  # looked at
ALIKE = 3  # operations that meet two sizes alike: it is the size of what they are given that changed


@rule("JX132", "recompile-rate", WARNING)
def recompile_rate(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        if not f.user:
            continue
        again = recompilations(f)
        rate = _by_calls(f, again) or _by_time(again)
        if rate is not None:
            last = again[-1]
            common, fix = _in_common(run, again)
            yield Finding(
                code="JX132",
                severity=WARNING,
                certainty=CERTAIN,
                title=f"{f.display_name} keeps recompiling: {rate}{common}",
                function=f.id,
                source=last.site,
                evidence=[Evidence(rate, compilation=last.id, source=last.site)],
                fix=fix,
                seconds=None,
            )


def _in_common(run: Run, again: list[Compilation]) -> tuple[str, Fix]:
    """What most of them have as their cause, and what to do about it."""
    found: dict[tuple[str, str | None], list[tuple[Compilation, Cause]]] = {}
    for c in again:
        cause = causes.of(run, c)[0]
        found.setdefault((cause.kind, cause.path), []).append((c, cause))
    most = max(found.values(), key=len)
    if 2 * len(most) <= len(again):
        return "", Fix("see what its recompiles have in common; where it is a shape, pad to a few sizes")
    times = "in all of them" if len(most) == len(again) else f"in {len(most):,} of {len(again):,}"
    group = recompiles.group_of(run, [c for c, _ in most], [cause for _, cause in most])
    advice = recompiles.advice(group) or Fix("see what its recompiles have in common")
    cause = group.cause
    what = recompiles.CHANGED.get(cause.kind)
    reason = f"{cause.path} {what}" if what and cause.path else f"the cause is {cause.kind.replace('_', ' ')}"
    return f"; {times} {reason}", advice


def _by_calls(f: Function, again: list[Compilation]) -> str | None:
    calls = max(f.counted_calls.values(), default=0)
    if not calls:
        return None
    window = min(WINDOW, calls)
    recent = [c for c in again if c.calls_then is not None and c.calls_then > calls - window]
    if len(recent) < FEWEST or 5 * len(recent) < window:
        return None
    return f"{len(recent)} of the last {window} calls of {f.display_name} recompiled"


def _by_time(again: list[Compilation]) -> str | None:
    """The most within one minute."""
    most = start = 0
    for end, c in enumerate(again):
        while c.t_ns - again[start].t_ns > MINUTE_NS:
            start += 1
        most = max(most, end - start + 1)
    return f"{most} recompiles within a minute" if most >= FEWEST else None


@rule("JX133", "eager-barrage", WARNING)
def eager_barrage(run: Run) -> Iterator[Finding]:
    lines: dict[tuple[str, int], list[tuple[Compilation, Frame]]] = {}
    for c in run.compilations.values():
        at = _entrance(c)
        small = c.seconds < SMALL_S
        if small and not c.function.user and c.reached_phases & 4 and at is not None and c.entry == "call":
            lines.setdefault((at.file, at.line), []).append((c, at))
    for several in lines.values():
        if len(several) < BARRAGE:
            continue
        members, at = [c for c, _ in several], several[0][1]
        fix = _what_to_do(run, members, at)
        if fix is None:
            continue
        names = sorted({c.function.seen.name for c in members})
        some = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        yield Finding(
            code="JX133",
            severity=WARNING,
            certainty=CERTAIN,
            title=f"{len(members)} small compilations come from one line outside jit ({some})",
            function=None,
            source=at,
            evidence=[
                Evidence(f"{c.function.seen.name}", compilation=c.id, source=c.site) for c in members[:5]
            ],
            fix=fix,
            seconds=sum(c.seconds for c in members),
        )


def _entrance(c: Compilation) -> Frame | None:
    """The line that could be wrapped: a library may have called the one that applied the operation."""
    if c.missed is None or c.site is None:
        return None
    above = [c.site, *c.missed.stack]
    at = c.missed.into_library or 0
    return above[at] if 0 <= at < len(above) else c.site


def _what_to_do(run: Run, members: list[Compilation], at: Frame) -> str | None:
    """By the library that the line calls; None where nothing is known to help."""
    called = Counter(c.missed.library for c in members if c.missed is not None).most_common(1)
    library = called[0][0] if called else None
    within = any((c.site.file, c.site.line) != (at.file, at.line) for c in members if c.site is not None)
    if library is None or library in JAX_ROOTS:
        return AROUND
    if library in TRACED_WHOLE:
        how = jit_decorators.advice(sources.of(run)(at.file), at.line, library)
        if within:
            return THROUGH_LIBRARY.format(how=how, library=library)
        return AROUND if how == jit_decorators.GENERAL else f"jit what this line calls, {how}"
    if library not in WRAPPER_ROOTS:
        return READING.format(library=library)
    return GROWING.format(library=library) if _sizes_change(members) else None


def _sizes_change(members: list[Compilation]) -> bool:
    """Do the same operations come again with another size?"""
    met: dict[int, set[str]] = {}
    for c in members:
        for leaf in c.key.arguments if c.key is not None else ():
            for n in leaf.shape or ():
                if isinstance(n, int) and n > 1:
                    met.setdefault(n, set()).add(c.function.id)
    several = [operations for operations in met.values() if len(operations) >= ALIKE]
    return any(2 * len(a & b) >= len(a | b) for a, b in itertools.combinations(several[:MOST_SIZES], 2))
