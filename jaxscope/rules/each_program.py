"""Apply a rule to each compiled program of the user's functions: the programs that ran, and the same programs
compiled for targets (other machines, which need not be available). Equal findings are merged into one that
names the targets.

The compiled texts and the findings about them can differ between machines. Each rule decides which findings
are equal, because equal findings may have different figures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import msgspec

from jaxscope.analysis.programs import Texts
from jaxscope.analysis.source_lines import in_a_loop
from jaxscope.model import line_times, sources, target_programs
from jaxscope.model.records import Function, Program, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import merging
from jaxscope.schema.findings import NOTE, Evidence, Finding
from jaxscope.schema.line_times import COMPILING, WAITING
from jaxscope.schema.messages import message

LONG = 0.2  # share of the measured time
MANY = 10_000_000_000  # operations that take a CPU a good part of a second
# GPUs and TPUs do this many times as many operations in the same time. Measured on an H200: a call of the
# examples of JX211 takes as long in either form, and draws with jax.random.choice take longer.
FASTER = 100
LOOKED = 4  # how many programs of a function a rule reads: the latest ones

# The findings of a rule in one program, each with a value: findings of two programs with the same value are
# equal.
Look = Callable[[Program, Function, Texts], Iterator[tuple[Hashable, Finding]]]


def users(run: Run) -> Iterator[tuple[Program, Function, Texts]]:
    """Yield (program, function, analyzed texts of the program) for each of the user's functions: its latest
    program, or if some were called, the latest of these. For a function that was only lowered for targets
    (machines to compile for), it is a program compiled for a target."""
    latest = _latest(run)
    for f, ps in latest.values():
        yield ps[0], f, run.texts_of(ps[0])
    for f, programs in target_programs.of_run(run):
        readable = [p for p in programs if p.texts]
        if f.user and f.id not in latest and readable:
            yield readable[0], f, run.texts_of(readable[0])


def costliest(run: Run) -> Iterator[tuple[Program, Function, Texts]]:
    """Yield the same as ``users``, and in addition a function's slowest program to compile, if an earlier
    program took longer to compile than the latest one."""
    yield from users(run)
    for f, ps in _latest(run).values():
        longer = [p for p in ps[1:] if _compile_seconds(p) > _compile_seconds(ps[0])]
        for p in sorted(longer, key=lambda p: -_compile_seconds(p))[:1]:
            yield p, f, run.texts_of(p)


def _compile_seconds(p: Program) -> float:
    """Return the seconds of the longest compilation of ``p``."""
    return max((c.seconds for c in p.compilations), default=0.0)


@cached_until_changed
def _latest(run: Run) -> dict[str, tuple[Function, list[Program]]]:
    """Return {id of a user's function: (the function, its programs with the latest first)}. If some of a
    function's programs were called, only these are returned."""
    found: dict[str, tuple[Function, list[Program]]] = {}
    for p in run.programs.values():
        f = p.function
        if f is not None and f.user:
            found.setdefault(f.id, (f, []))[1].append(p)
    return {
        id: (f, sorted([p for p in ps if p.called] or ps, key=lambda p: -p.compilations[-1].t_ns))
        for id, (f, ps) in found.items()
    }


def of_compiled(run: Run, look: Look) -> Iterator[Finding]:
    """Yield the findings of the rule ``look`` in the programs of each of the user's functions: the latest
    LOOKED programs of this machine, and those compiled for targets (other machines). ``look`` yields pairs
    (value, finding) for one program; findings of one function with equal values become one finding.

    If the function's latest program does not have the finding, the finding names the programs that have it.
    The severity becomes ``note`` if the run was on a CPU, and programs compiled for targets do not have the
    finding."""
    latest, targets = _latest(run), {f.id: ps for f, ps in target_programs.of_run(run) if f.user}
    for id in dict.fromkeys([*latest, *targets]):
        here = latest[id][1][:LOOKED] if id in latest else []
        there = [p for p in targets.get(id, ()) if "hlo" in p.texts or not here]
        programs = [*here, *there]
        seen = [_looked(look, p, run.functions[id], run.texts_of(p)) for p in programs]
        for members in merging.grouped(seen):
            several = [(programs[n], f) for n, f in members]
            (first, found), rest = several[0], [(p, f) for p, f in several[1:] if p not in here]
            if first in here[1:]:
                found = _earlier(run, found, [p for p, _ in several if p in here], here[0])
            if not rest and first in here and run.platform == "cpu":
                found = _of_stand_in(found, [p for p in there if "hlo" in p.texts])
            names = [p.target or "a target" for p, _ in several if p not in here]
            others = (msgspec.structs.replace(e, target=p.target) for p, f in rest for e in f.evidence)
            yield merging.for_targets(found, names, others, ran=first in here) if names else found


def _earlier(run: Run, f: Finding, having: Sequence[Program], latest: Program) -> Finding:
    """Return the finding ``f``, extended by the compilation numbers of ``having``, the programs with the
    problem, and of ``latest``, the function's latest program, which does not have it. Return ``f`` unchanged
    if the numbers are unknown."""
    numbers = sorted(n for p in having for n in [run.number(p.compilations[-1])] if n is not None)
    if not numbers:
        return f
    number = run.number(latest.compilations[-1])
    contexts = msgspec.structs.replace(f.contexts, programs=numbers, latest=number)
    return msgspec.structs.replace(f, contexts=contexts)


def _looked(look: Look, p: Program, f: Function, texts: Texts) -> list[Finding]:
    """Return the findings of the rule ``look`` in the program ``p`` of ``f``, each with its value as
    ``subject``."""
    return [msgspec.structs.replace(found, subject=same) for same, found in look(p, f, texts)]


def _of_stand_in(f: Finding, others: Sequence[Program]) -> Finding:
    """Return the finding ``f`` as a note which says that ``others``, compiled for targets, do not have the
    problem. Return ``f`` unchanged if ``others`` is empty."""
    if not others:
        return f
    absent = [Evidence(message("not-found-for-target", target=p.target), program=p.id) for p in others]
    return msgspec.structs.replace(f, severity=NOTE, evidence=[*f.evidence, *absent])


def takes_time(run: Run, p: Program, f: Function, operations: float = 0) -> bool:
    """Return whether the calls of ``p``, a program of the function ``f``, matter to the duration of the run.
    One of these is enough:

    - ``f`` is called more than once. If calls are not counted: a loop is around the line of the call, or
      around a line above it in the call stack.
    - One call needs at least MANY operations, on accelerators FASTER times as many.
    - The main thread spent at least the share LONG of the measured time at the line of the call, without the
      time to compile, or in calls of ``f`` and on waiting for their results.

    Args:
      operations: the operations that one call needs, as far as they are known.
    """
    if f.calls is not None and f.calls > 1:
        return True
    if operations >= MANY * (1 if run.platform == "cpu" else FASTER):
        return True
    c = p.compilations[-1]
    text = sources.of(run)
    lines = ((text(frame.file), frame.line) for frame in c.lines)
    looped = f.calls is None and any(s is not None and in_a_loop(s, line) for s, line in lines)
    if looped:
        return True
    measured = line_times.measured(run)
    here = [
        s.seconds
        for s in line_times.by_line(run)
        if c.site is not None and s.line.place == c.site.place
        if s.doing != COMPILING
    ]
    if len(_latest(run)) == 1:
        # Nothing else is as long, so that what the program waits for are the results of ``f``.
        here += [t.seconds for doing, t in line_times.entries(run) if doing == WAITING]
    spent = max(sum(here), line_times.running_seconds(run, f) or 0.0)
    return measured is not None and spent >= LONG * measured.seconds
