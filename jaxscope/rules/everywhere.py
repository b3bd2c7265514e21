"""One finding of a program that ran and of the same for machines that are not there: told once, naming both.

What a rule sees in the lowered text is the same for every machine. What the compiler made of it is looked at for
each; alike is what the rule calls so, as figures may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis.programs import Texts
from jaxscope.model import retargeted
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import registry
from jaxscope.schema.findings import NOTE, Evidence, Finding

MOST = 3  # targets named in a title

# What a rule sees in one program: what makes it the same finding in another, and the finding.
Look = Callable[[Program, Function, Texts], Iterator[tuple[Hashable, Finding]]]


def users(run: Run) -> Iterator[tuple[Program, Function, Texts]]:
    """The programs of the user's functions, with what their texts say; of each function the latest only.

    Of a function that was only lowered for machines that are not there (``jaxscope compile``) one of those.
    """
    latest = _latest(run)
    for p, f in latest.values():
        yield p, f, run.texts_of(p)
    for f, programs in retargeted.of_run(run):
        readable = [p for p in programs if p.texts]
        if f.user and f.id not in latest and readable:
            yield readable[0], f, run.texts_of(readable[0])


def _latest(run: Run) -> dict[str, tuple[Program, Function]]:
    latest: dict[str, tuple[Program, Function]] = {}
    for p in run.programs.values():
        f = p.function
        if f is not None and f.user:
            before = latest.get(f.id)
            if before is None or p.compilations[-1].t_ns > before[0].compilations[-1].t_ns:
                latest[f.id] = p, f
    return latest


def of_compiled(run: Run, look: Look) -> Iterator[Finding]:
    """What ``look`` sees in the latest program of each of the user's functions, here and for each target.

    What a CPU's compiler does alone, where the CPU stood in for machines whose compilers do not, is a note.
    """
    latest, targets = _latest(run), {f.id: ps for f, ps in retargeted.of_run(run) if f.user}
    for id in dict.fromkeys([*latest, *targets]):
        here = [latest[id][0]] if id in latest else []
        there = [p for p in targets.get(id, ()) if "hlo" in p.texts or not here]
        alike: dict[tuple[Hashable, int], list[tuple[Program, Finding]]] = {}
        for p in (*here, *there):
            times: dict[Hashable, int] = {}
            for same, f in look(p, run.functions[id], run.texts_of(p)):
                times[same] = times.get(same, 0) + 1
                alike.setdefault((same, times[same]), []).append((p, f))
        for several in alike.values():
            (first, found), rest = several[0], several[1:]
            if not rest and first in here and run.platform == "cpu":
                found = _of_stand_in(found, [p for p in there if "hlo" in p.texts])
            names = [p.target or "a target" for p, _ in several if p not in here]
            yield told(found, names, [(p.target, f) for p, f in rest], ran=first in here)


def _of_stand_in(f: Finding, others: Sequence[Program]) -> Finding:
    if not others:
        return f
    absent = [Evidence(f"not found in what was compiled for {p.target}", program=p.id) for p in others]
    return msgspec.structs.replace(f, severity=NOTE, evidence=[*f.evidence, *absent])


def told(
    f: Finding, names: Sequence[str], others: Iterable[tuple[str | None, Finding]] = (), *, ran: bool
) -> Finding:
    """``f`` as true of ``names``, too, with what was seen there; ``ran``: and of the program that ran."""
    if not names:
        return f
    names = list(dict.fromkeys([*f.targets, *names]))
    return msgspec.structs.replace(
        f,
        title=bare(f) + _suffix(names, ran),
        targets=names,
        evidence=[
            *f.evidence,
            *(
                msgspec.structs.replace(e, text=f"for {name}: {e.text}" if name else e.text)
                for name, other in others
                for e in other.evidence
            ),
        ],
    )


def bare(f: Finding) -> str:
    """Its title without the machines that are not there."""
    return f.title.removesuffix(_suffix(f.targets, True)).removesuffix(_suffix(f.targets, False))


def _suffix(names: Sequence[str], ran: bool) -> str:
    if not names:
        return ""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f" ({'also ' if ran else ''}for {', '.join(names[:MOST])}{more})"


def findings(run: Run, further: Iterable[Run] = ()) -> list[Finding]:
    """What the rules find in ``run``, and in ``further`` of their targets; errors first, then by seconds.

    ``further``: the same program on other numbers of devices (store.sub_runs). What is true of the program as it
    ran is in ``run``; the same words for another target are told there, too.
    """
    return registry.in_order(joined(registry.findings(run), further))


def joined(said: Sequence[Finding], further: Iterable[Run]) -> list[Finding]:
    """``said`` of a run, with what the rules find of the targets of ``further``."""
    found = list(said)
    for other in further:
        free = list(range(len(found)))
        for f in registry.findings(other):
            if not f.targets:
                continue
            at = next((i for i in free if _same(found[i], f)), None)
            if at is None:
                found.append(f)
                continue
            free.remove(at)
            ran = not found[at].targets or found[at].title.endswith(_suffix(found[at].targets, True))
            found[at] = told(found[at], f.targets, [(None, f)], ran=ran)
    return found


def _same(a: Finding, b: Finding) -> bool:
    return (a.code, a.function, a.source, bare(a)) == (b.code, b.function, b.source, bare(b))


def of_target_alone(run: Run, f: Finding) -> bool:
    """Does ``f`` speak of programs for absent machines only, not of one that ran?"""
    return bool(f.targets) and not any(_ran(run, e) for e in f.evidence)


def _ran(run: Run, e: Evidence) -> bool:
    return e.program is None or e.program in run.programs
