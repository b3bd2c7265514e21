"""JX190: nothing that the user sees is traced, lowered or compiled after step N.

A pure reading of a run, or of a part of one; knows nothing of who asks: a block, a test, a command.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jaxscope.errors import UsageError
from jaxscope.model import causes
from jaxscope.model.names import matches, number_of
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.model.steps import Steps
from jaxscope.rules import recompiles, registry, resized
from jaxscope.rules.resized import Change, Miss, eager
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Cause, Evidence, Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import UNHEARD
from jaxscope.schema.steps import Either, Step, known

CODE = "JX190"
UNKNOWN = "JX901"
STEPS_UNKNOWN = "steps-unknown"
EVIDENCE = 5  # compilations named in one finding
BESIDE = 3  # where those of other functions stand beside them

# Compilation id -> the step it belongs to, counted from the beginning of the part.
Part = Mapping[str, Step]


class Told(msgspec.Struct, frozen=True):
    """A finding of the gate, and all compilations that it speaks of."""

    finding: Finding
    compilations: frozenset[str] = frozenset()


def recompiles_after(
    run: Run,
    n: int,
    functions: Sequence[str] | None = None,
    allow_cache_hits: bool = False,
    part: Part | None = None,
    since: str | None = None,
) -> list[Finding]:
    """The findings of :func:`told_after`."""
    return [t.finding for t in told_after(run, n, functions, allow_cache_hits, part, since)]


def of_part(
    run: Run, n: int, functions: Sequence[str] | None, part: Part, since: str | None = None
) -> list[Finding]:
    """The findings of :func:`told_after` for a block or a test, which need no steps where nothing was compiled.

    Raises:
      UsageError: something was compiled and nothing counts the steps.
    """
    if not n or None not in part.values():
        return recompiles_after(run, n, functions, part=part, since=since)
    found = recompiles_after(run, 0, functions, part=part)
    if any(f.code == CODE and f.severity == ERROR for f in found):
        raise unknown_steps(run, part)
    return [f for f in found if f.code != CODE]


def told_after(
    run: Run,
    n: int,
    functions: Sequence[str] | None = None,
    allow_cache_hits: bool = False,
    part: Part | None = None,
    since: str | None = None,
    keep: Callable[[str, Frame | None], bool] = lambda code, site: True,
) -> list[Told]:
    """What was traced, lowered or compiled of user-visible functions in steps n + 1, n + 2, ...: errors.

    What was compiled of a library's function from a user's line is a note.

    User-visible: the function is the user's, or the user has given it to jit. An eager operation, which is JAX's own,
    counts where it was compiled. Misses of the fast path alone never count. What happened inside the trace of another
    compilation that came too late is part of that one. What nobody can place before or after step n is an error, too.

    Args:
      n: the last step in which compiling is allowed; 0 needs no steps: then nothing may be compiled at all.
      functions: names or patterns; None: all.
      allow_cache_hits: leave out what came from the persistent cache.
      part: only these compilations, with their steps; None: the whole run, by its own steps.
      since: what the recording began with (``this block``), where functions may have been compiled before it.
      keep: is a compilation, called from this line, looked at? Asked before those that share a cause are put together.

    Raises:
      UsageError: ``n`` is no count, or it is not 0 and nothing counted the steps.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise UsageError(
            f"no recompiles after step {n!r}: the step is 0, 1, 2, ...",
            hint="0 allows no compilation at all; 1 allows what the first step compiles",
            slug="gate-after",
        )
    steps = Steps(run)
    if part is None:
        if n and not any(steps.known(p) for p in run.processes.values()):
            raise unknown_steps(run)
        part = {c.id: steps.of(c) for c in run.compilations.values()}
    late: list[Miss] = []
    unplaced: list[Compilation] = []
    for c in run.compilations.values():
        if c.id not in part or not (_counts(c, allow_cache_hits) or _of_library(c)):
            continue
        if functions is not None and not _meant(c, functions):
            continue
        step = known(part[c.id], n)
        if (n and step is not None and step <= n) or not keep(CODE, c.site):
            continue
        if n and step is None:
            unplaced.append(c)
        else:
            late.append(Miss(c, step, _cause(run, c, since)))
    return [
        *(
            Told(_finding(run, n, change, since), frozenset(m.compilation.id for m in change.every))
            for change in resized.together(run, _alike(_outermost(run, late)))
        ),
        *map(Told, _unplaced(n, [c for c in unplaced if not _of_library(c)], part)),
        *map(Told, _unmet(run, functions)),
    ]


def _cause(run: Run, c: Compilation, since: str | None) -> Cause:
    cause = causes.of(run, c)[0]
    if cause.kind != "first" or since is None:
        return cause
    text = f"nothing earlier of it is known, as the recording began with {since}"
    return msgspec.structs.replace(cause, text=text)


def within(part: Part | None, compilations: Sequence[Compilation]) -> list[Compilation]:
    """Those that are part of ``part``; None: all."""
    return [c for c in compilations if part is None or c.id in part]


def unknown_steps(run: Run | None = None, part: Part | None = None) -> UsageError:
    """Says how steps are given; with a run (or a part of it), for which function."""
    busiest = None
    if run is not None:
        users = [f for f in run.functions.values() if f.user and f.compiled and within(part, f.compilations)]
        busiest = max(users, key=lambda f: (f.compiled, f.seconds), default=None)
    name = busiest.seen.name if busiest is not None else "NAME"
    reasons = [lost.reason for lost in run.lost if lost.seam == "step_function"] if run is not None else []
    why = f" ({reasons[0]})" if reasons else ""
    # Through a wrapper of a library calls cannot be counted from outside; a lambda has no name of its own.
    wrappers = busiest.seen.wrappers if busiest is not None else []
    outside = not reasons and name.isidentifier() and not any(w.startswith(UNHEARD) for w in wrappers)
    option = f", or record with jaxscope run --step-function {name}" if outside else ""
    return UsageError(
        f"nothing counted the steps, so what came after which step is not known{why}",
        hint="call jaxscope.step() at the end of each step, or put @jaxscope.watch(step=True) on the step function"
        f"{option}; after step 0 (nothing may be compiled) needs no steps",
        slug=STEPS_UNKNOWN,
    )


def _counts(c: Compilation, allow_cache_hits: bool) -> bool:
    f = c.function
    if not c.reached_phases or (allow_cache_hits and c.persistent_hit):
        return False
    return f.user or bool(c.reached_phases & 4 and (eager(f) or _nameless(f)))


def _meant(c: Compilation, functions: Sequence[str]) -> bool:
    return any(matches(c.function, pattern) for pattern in functions)


def _of_library(c: Compilation) -> bool:
    """A function that a library has given to jit, called from a line of the user's."""
    library = c.function.seen.library and not eager(c.function) and not _nameless(c.function)
    return library and c.entry == "call" and c.site is not None and bool(c.reached_phases & 4)


def _nameless(f: Function) -> bool:
    """Lowered before the recording began: of what is compiled now only the program is there."""
    seen = f.seen
    return seen.library and not seen.eager and seen.file is None and seen.module is None


def _outermost(run: Run, late: Sequence[Miss]) -> list[Miss]:
    """Without those inside the trace of another one of the user's that came too late, and that was still running.

    Of a call that looks as if it stood around another one (frames share addresses) the time says whether it did.
    """
    by_id = {m.compilation.id: m for m in late if not _of_library(m.compilation)}
    return [m for m in late if not any(_runs_at(by_id.get(o.id), m) for o in _around(run, m.compilation))]


def _runs_at(outer: Miss | None, inner: Miss) -> bool:
    if outer is None:
        return False
    c = outer.compilation
    ends = [e.t_ns for e in (c.traced, c.lowered, c.compiled, c.failed) if e is not None]
    return c.phase is not None or inner.compilation.t_ns <= max(ends, default=0)


def _around(run: Run, c: Compilation) -> Iterator[Compilation]:
    """The compilations in whose traces ``c`` stands, innermost first."""
    seen = {c.id}
    while c.missed is not None and c.missed.inside is not None:
        outer = run.compilation(c.process, c.missed.inside)
        if outer is None or outer.id in seen:
            return
        seen.add(outer.id)
        yield outer
        c = outer


def _alike(late: Sequence[Miss]) -> list[list[Miss]]:
    """Those of one function, for one reason, in order of time; the most expensive group first."""
    groups: dict[object, list[Miss]] = {}
    for one in sorted(late, key=lambda x: (x.compilation.t_ns, x.compilation.call)):
        c, cause = one.compilation, one.cause
        line = (c.site.file, c.site.line) if c.site is not None and eager(c.function) else None
        groups.setdefault((c.function.id, cause.kind, cause.path, line), []).append(one)
    return sorted(groups.values(), key=lambda g: -sum(x.compilation.seconds for x in g))


def _finding(run: Run, n: int, change: Change, since: str | None) -> Finding:
    group = change.group
    first, last = group[0], group[-1]
    f = first.compilation.function
    name = f.name.replace(".<locals>", "")
    subject = f"the eager operation {name}" if eager(f) else name
    if _nameless(f):
        subject = "a function whose name is not known"
    library = _of_library(last.compilation)
    if library:
        subject = f"{name}, a function of {(f.seen.module or 'a library').partition('.')[0]},"
    texts = {x.cause.text for x in group}
    told = "; most recently: " if len(texts) > 1 else ": "
    # Beside others a call is told with its step, and all in the order in which they came.
    apart = [(x.compilation.t_ns, _call(run, x, where=bool(change.others))) for x in _shown(group, change)]
    return Finding(
        code=CODE,
        severity=NOTE if library else ERROR,
        certainty=CERTAIN if all(x.cause.certainty == CERTAIN for x in group) else LIKELY,
        title=f"{subject} was {_done(group)}{_when(n, group)}{told}{last.cause.text}{resized.also(change)}",
        function=f.id,
        source=last.compilation.site,
        evidence=[e for _, e in sorted([*apart, *resized.evidence(run, change)], key=lambda told: told[0])],
        fix=_fix(run, n, change, since),
        seconds=change.seconds,
    )


def _shown(group: Sequence[Miss], change: Change) -> list[Miss]:
    """Those of ``group`` that are told one by one: the first and the last."""
    most = BESIDE if change.others else EVIDENCE
    return [*group[: most - 1], *group[most - 1 :][-1:]]


def _call(run: Run, x: Miss, *, where: bool) -> Evidence:
    c = x.compilation
    at = f" at step {x.step:,}" if where and x.step is not None else ""
    name = f"{c.function.name.replace('.<locals>', '')}" if where else ""
    text = f"{name}#{number_of(run, c)}{at}: {x.cause.text}"
    return Evidence(text, compilation=c.id, program=c.program, source=c.site, step=x.step)


def _fix(run: Run, n: int, change: Change, since: str | None) -> str | None:
    group = change.group
    if group[-1].cause.kind == "first" and since is not None:
        return "record the whole program (jaxscope run, or jaxscope.record() around it) to be told what is new about it"
    if group[-1].cause.kind == "first":
        return (
            f"call it with such arguments {f'by step {n}' if n else 'before'}, or allow more steps to compile"
        )
    known = recompiles.group_of(run, [x.compilation for x in group], [x.cause for x in group])
    fix = recompiles.advice(known)
    eagerly = change.eager and change.others and fix is not None
    return f"{fix}{resized.BEFORE}" if eagerly else fix


def _done(group: Sequence[Miss]) -> str:
    """``traced and compiled``, ``lowered and compiled 3 times``, ``traced``."""
    bits = 0
    for x in group:
        bits |= x.compilation.reached_phases
    if bits & 4:
        word = "traced and compiled" if bits & 1 else "lowered and compiled" if bits & 2 else "compiled"
    else:
        word = "traced and lowered" if bits & 3 == 3 else "lowered" if bits & 2 else "traced"
    if all(x.compilation.persistent_hit for x in group):
        word += " (from the persistent cache)"
    return word if len(group) == 1 else f"{word} {len(group):,} times"


def _when(n: int, group: Sequence[Miss]) -> str:
    steps = sorted({x.step for x in group if x.step is not None})
    if not n or not steps:
        return ", where nothing may be compiled"
    where = f"step {steps[0]:,}" if len(steps) == 1 else f"steps {steps[0]:,} to {steps[-1]:,}"
    return f" in {where}, after step {n:,}"


def _unplaced(n: int, compilations: Sequence[Compilation], part: Part) -> Iterator[Finding]:
    """Compilations of which nobody knows whether they were late: nothing counts the steps of their process, or two
    ways of counting contradict each other."""
    by_reason: dict[str, list[Compilation]] = {}
    for c in compilations:
        step = part[c.id]
        reason = step.because if isinstance(step, Either) else None
        by_reason.setdefault(reason or f"nothing counts the steps of process {c.process.pid}", []).append(c)
    for reason, those in by_reason.items():
        names = sorted({c.function.name for c in those})
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        text = (
            f"{'a compilation' if len(those) == 1 else f'{len(those):,} compilations'} ({some}) "
            f"{'is' if len(those) == 1 else 'are'} not known to be before or after step {n}: {reason}"
        )
        fix = "count the steps in one way: jaxscope.step() at the end of each, or @jaxscope.watch(step=True) on the step function"
        yield msgspec.structs.replace(not_known(text, those[0]), severity=ERROR, fix=fix)


def _unmet(run: Run, functions: Sequence[str] | None) -> Iterator[Finding]:
    for pattern in functions or ():
        if not any(matches(f, pattern) for f in run.functions.values()) and not run.defined(pattern):
            yield no_such_function(run, pattern)


def no_such_function(run: Run, pattern: str) -> Finding:
    """Nothing that was recorded is called ``pattern``, so what is asked of it cannot be looked at: an error."""
    names = {f.name.replace(".<locals>", "") for f in run.functions.values() if f.user}
    near = difflib.get_close_matches(pattern, names, 1, 0.5)
    text = f"no function called {pattern!r} was compiled: is it spelled as in the program?"
    fix = f"did you mean {near[0]}?" if near else None
    return msgspec.structs.replace(not_known(text), severity=ERROR, fix=fix)


def untold(found: Sequence[Finding], late: Sequence[Finding]) -> list[Finding]:
    """``found`` without what the rules say of recompiles that are told to be ``late``, with the same advice."""
    told = {e.compilation for f in late for e in f.evidence} - {None}
    codes = {r.code for r in registry.rules().values() if r.recompiles}
    return [f for f in found if f.code not in codes or not any(e.compilation in told for e in f.evidence)]


def not_known(text: str, c: Compilation | None = None) -> Finding:
    """What a check could not look at: said, and a failure where checks are strict."""
    return Finding(
        code=UNKNOWN,
        severity=NOTE,
        certainty=CERTAIN,
        title=text,
        function=c.function.id if c is not None else None,
        source=c.site if c is not None else None,
        evidence=[Evidence(text, compilation=c.id, source=c.site)] if c is not None else [],
    )


def unseen(text: str) -> Finding:
    """A part of the run was not recorded: an error, as what happened there is not known."""
    return msgspec.structs.replace(not_known(text), severity=ERROR)


def cut_short(how: str, source: Frame | None, *, surely: bool) -> Finding:
    """The program failed before its end: what it would have done then is not known."""
    found = not_known(f"{how}: what is checked is what it did until then")
    return msgspec.structs.replace(found, severity=WARNING if surely else NOTE, source=source)
