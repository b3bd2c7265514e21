"""JX132 and JX133: functions that keep recompiling, and what one line has compiled outside jit."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import jit_decorators
from jaxscope.model import causes, payers, sources
from jaxscope.model.causes import recompilations
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import recompiles
from jaxscope.rules.registry import rule
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import CERTAIN, WARNING, Evidence, Finding, Fix
from jaxscope.schema.libraries import COMPUTING_ROOTS, JAX_ROOTS, TRACED_WHOLE, WRAPPER_ROOTS
from jaxscope.schema.messages import Count, Message, Names, message

WINDOW = 50  # calls looked back on
FEWEST = 10  # recompiles that make an alarm
SHARE = 0.1  # of all seconds of the run: what one line costs that is worth a finding
BARRAGE, SOME = 20, 0.2  # of compilations outside jit from one line, a finding from this part of SHARE on
SEVERAL = 10  # such compilations that one program could replace
ARGUMENTS = frozenset({"weak_type", "dtype", "tree", "committed", "sharding"})
STEPS = frozenset(
    {"update", "step", "init", "init_state", "evaluate"}
)  # methods of a library that can be jitted
MAKES_ANEW = frozenset(
    {"numpyro"}
)  # functions that an object of theirs defines in each run, also the same object
ITERATED = "unstack"  # the operation of iterating over an array
# Why what a line does is compiled again.
BODIES, SIZES, MADE = message("because-of-bodies"), message("because-of-sizes"), message("because-made-anew")


@rule("JX132", "recompile-rate", WARNING)
def recompile_rate(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        again = recompilations(f) if f.user else []
        rate = _by_calls(f, again) or _by_number(f, again)
        if rate is None or _has_own_finding(run, again):
            continue
        last = again[-1]
        yield Finding(
            code="JX132",
            severity=WARNING,
            certainty=CERTAIN,
            title=message("keeps-recompiling", function=f.name.replace(".<locals>", ""), rate=rate),
            function=f.id,
            source=last.site,
            evidence=[Evidence(rate, compilation=last.id, source=last.site)],
            fix=Fix(message("fix-many-causes")),
            seconds=None,
        )


def _has_own_finding(run: Run, again: list[Compilation]) -> bool:
    """Return whether more than half have one cause, which the rule about that cause reports with its advice."""
    found: dict[tuple[str, str | None], list[tuple[Compilation, Cause]]] = {}
    for c in again:
        cause = causes.of(run, c)[0]
        found.setdefault((cause.kind, cause.path), []).append((c, cause))
    most = max(found.values(), key=len)
    if 2 * len(most) <= len(again):
        return False
    group = recompiles.group_of(run, [c for c, _ in most], [cause for _, cause in most])
    return recompiles.advice(group) is not None


def _by_calls(f: Function, again: list[Compilation]) -> Message | None:
    calls = max(f.counted_calls.values(), default=0)
    window = min(WINDOW, calls)
    recent = [c for c in again if c.calls_then is not None and c.calls_then > calls - window]
    if not calls or len(recent) < FEWEST or 5 * len(recent) < window:
        return None
    name = f.name.replace(".<locals>", "")
    return message("recompiled-of-calls", n=len(recent), window=window, function=name)


def _by_number(f: Function, again: list[Compilation]) -> Message | None:
    """Return the number of recompiles where calls are not counted."""
    if f.counted_calls or len(again) < FEWEST:
        return None
    return message("recompiled-so-often", n=len(again))


@rule(payers.CODE, "eager-barrage", WARNING)
def eager_barrage(run: Run) -> Iterator[Finding]:
    least, resized = SHARE * payers.total_seconds(run), payers.resized_lines(run)
    called = {
        (c.site.file, c.site.line)
        for f in run.functions.values()
        for c in f.compilations
        if f.user and c.site is not None and c.entry == "call"
    }
    for p in payers.payers(run):
        if p.within and p.library in JAX_ROOTS and (p.line.file, p.line.line) in called:
            continue  # of values that a jitted function knows while it is traced: it is jitted already
        why, fix, cost = _what_to_do(run, p)
        if fix is None or cost < (least * SOME if len(p.compilations) >= BARRAGE else least):
            continue
        if p.again and why in (SIZES, None) and (p.line.file, p.line.line) in resized:
            continue  # it is the size that the function on this line is called with, which has its own finding
        again = (
            message("of-them-again", n=Count(len(p.again), "repeat"), why=why) if p.again and why else None
        )
        yield Finding(
            code=payers.CODE,
            severity=WARNING,
            certainty=CERTAIN,
            title=message(
                "compiled-outside-jit",
                compilations=Count(len(p.compilations), "compilation"),
                names=Names(tuple(p.names), 4),
                again=again,
            ),
            function=None,
            source=p.line,
            evidence=[
                Evidence(c.function.seen.name, compilation=c.id, source=c.site) for c in p.compilations[:5]
            ],
            fix=fix,
            seconds=cost,
            subject=(p.line.file, p.line.line),
        )


def _of_one_cause(run: Run, again: list[Compilation]) -> recompiles.Group | None:
    """Return the most expensive recompiles of one function of a library for one cause that its arguments have."""
    found: dict[tuple[str, str], list[tuple[Compilation, Cause]]] = {}
    for c in again:
        cause, module = causes.of(run, c)[0], c.function.seen.module or ""
        if (
            cause.kind in ARGUMENTS
            and not c.function.seen.eager
            and module.partition(".")[0] not in JAX_ROOTS
        ):
            found.setdefault((c.function.id, cause.kind), []).append((c, cause))
    groups = [
        recompiles.group_of(run, [c for c, _ in of], [cause for _, cause in of]) for of in found.values()
    ]
    return max(groups, key=lambda group: group.seconds, default=None)


def _what_to_do(run: Run, p: Payer) -> tuple[Message | None, Fix | None, float]:
    """Return why it is compiled again and what to do, by the library that the line calls, and the avoidable
    seconds.

    No fix where nothing is known to help: what is compiled once, and cannot be put into one program.
    """
    jax = p.library is None or p.library in JAX_ROOTS
    again = sum(c.seconds for c in p.again)
    iterated = sum(c.seconds for c in p.compilations if c.function.seen.name == ITERATED)
    made_anew = [(c, cause) for c in p.again if (cause := causes.of(run, c)[0]).kind in payers.MADE_ANEW]
    anew = 2 * sum(c.seconds for c, _ in made_anew) >= again > 0
    paths = [cause.path for _, cause in made_anew if cause.path is not None and cause.path[0] != "_"]
    objects = paths if anew else []  # but those of the library's own
    changing = not anew and payers.sizes_change(run, p)
    if 2 * iterated >= p.seconds:
        words = message("fix-iterate-numpy") if jax else message("fix-give-numpy", library=p.library)
        return None, Fix(words, "numpy"), iterated
    if (group := _of_one_cause(run, p.again)) is not None and 2 * group.seconds >= again:
        first = recompiles.group_of(
            run, group.compilations[:1], group.causes[:1]
        )  # the others may follow from it
        return message("because-of-cause", cause=first.cause), recompiles.advice(first), again
    at_once = p.seconds if len(p.compilations) >= SEVERAL else 0.0
    how = jit_decorators.advice(sources.of(run)(p.line.file), p.line.line, p.library)
    if jax and anew and not p.within:
        where = None if p.line.function == "<module>" else p.line.function.replace(".<locals>", "")
        function = where or "a function around this line"
        return BODIES, Fix(message("fix-jit-around-body", function=function), "jit"), again
    if jax and changing and not p.within:
        return SIZES, Fix(message("fix-one-size-or-numpy"), "pad"), again
    if objects and not jax:
        words = message("fix-make-object-once", path=objects[-1], library=p.library)
        return MADE, Fix(words, "make_once", {"path": objects[-1]}), again
    if jax or p.library in TRACED_WHOLE:
        why = BODIES if anew else None  # other sizes may be those of the layers that one call makes
        if p.within:
            return None, Fix(message("fix-jit-through-library", how=how, library=p.library), "jit"), at_once
        known = how != jit_decorators.GENERAL
        words = message("fix-jit-this-call", how=how) if known else message("fix-jit-around")
        return why, Fix(words, "jit"), at_once
    source = sources.of(run)(p.line.file)
    if p.library in MAKES_ANEW and (anew or changing):
        padded = message("fix-pad-first") if changing else None
        words = message("fix-jit-around-run", first=padded, library=p.library)
        return SIZES if changing else MADE, Fix(words, "jit"), again
    if changing and p.library in COMPUTING_ROOTS:
        return SIZES, Fix(message("fix-one-size-for-library", library=p.library), "pad"), again
    if p.library in COMPUTING_ROOTS and jit_decorators.calls(source, p.line.line, STEPS):
        return (
            MADE if anew else None,
            Fix(message("fix-jit-method", how=how, library=p.library), "jit"),
            at_once,
        )
    if anew:
        return MADE, Fix(message("fix-make-once", library=p.library), "make_once"), again
    if p.library in WRAPPER_ROOTS:
        return None, None, 0.0
    return None, Fix(message("fix-numpy-or-jit", library=p.library), "numpy"), at_once
