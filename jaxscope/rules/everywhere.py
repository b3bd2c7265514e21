"""One finding of a program that ran and of the same for machines that are not there: told once, naming both.

What a rule sees in the lowered text is the same for every machine. What the compiler made of it is looked at for
each; alike is what the rule calls so, as figures may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis.programs import Texts
from jaxscope.model import retargeted
from jaxscope.model.names import number_of
from jaxscope.model.records import Function, Program, asked_once
from jaxscope.model.run import Run
from jaxscope.rules import registry
from jaxscope.schema.findings import NOTE, Evidence, Finding

MOST = 3  # targets named in a title
LOOKED = 4  # programs of one function that are looked at: the latest

# What a rule sees in one program: what makes it the same finding in another, and the finding.
Look = Callable[[Program, Function, Texts], Iterator[tuple[Hashable, Finding]]]


def users(run: Run) -> Iterator[tuple[Program, Function, Texts]]:
    """The programs of the user's functions, with what their texts say; of each function the latest that was called.

    Of a function that was only lowered for machines that are not there (``jaxscope compile``) one of those.
    """
    latest = _latest(run)
    for f, ps in latest.values():
        yield ps[0], f, run.texts_of(ps[0])
    for f, programs in retargeted.of_run(run):
        readable = [p for p in programs if p.texts]
        if f.user and f.id not in latest and readable:
            yield readable[0], f, run.texts_of(readable[0])


@asked_once
def _latest(run: Run) -> dict[str, tuple[Function, list[Program]]]:
    """By id, the user's functions with their programs, the latest first.

    What was compiled ahead of time counts only where no call compiled anything: nobody knows that it ever ran.
    """
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
    """What ``look`` sees in the latest programs of each of the user's functions, here and for each target.

    What is alike in several is told once, of the latest; what the latest has not, names the programs that have it.
    What a CPU's compiler does alone, where the CPU stood in for machines whose compilers do not, is a note.
    """
    latest, targets = _latest(run), {f.id: ps for f, ps in retargeted.of_run(run) if f.user}
    for id in dict.fromkeys([*latest, *targets]):
        here = latest[id][1][:LOOKED] if id in latest else []
        there = [p for p in targets.get(id, ()) if "hlo" in p.texts or not here]
        alike: dict[tuple[Hashable, int], list[tuple[Program, Finding]]] = {}
        for p in (*here, *there):
            times: dict[Hashable, int] = {}
            for same, f in look(p, run.functions[id], run.texts_of(p)):
                times[same] = times.get(same, 0) + 1
                alike.setdefault((same, times[same]), []).append((p, f))
        for several in alike.values():
            (first, found), rest = several[0], [(p, f) for p, f in several[1:] if p not in here]
            if first in here[1:]:
                found = _earlier(run, found, [p for p, _ in several if p in here], here[0])
            if not rest and first in here and run.platform == "cpu":
                found = _of_stand_in(found, [p for p in there if "hlo" in p.texts])
            names = [p.target or "a target" for p, _ in several if p not in here]
            yield told(found, names, [(p.target, f) for p, f in rest], ran=first in here)


def _earlier(run: Run, f: Finding, having: Sequence[Program], latest: Program) -> Finding:
    """``f`` with the compilations whose programs have it, where the latest program has not."""
    numbers = sorted(n for p in having for n in [number_of(run, p.compilations[-1])] if n is not None)
    if not numbers:
        return f
    said = " and ".join(f"#{n}" for n in numbers)
    last = number_of(run, latest.compilations[-1])
    return msgspec.structs.replace(
        f, title=f"{f.title} (in {said}" + (f", not in #{last})" if last is not None else ")")
    )


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
    return registry.in_order(joined(registry.findings(run), map(registry.findings, further)))


def joined(said: Sequence[Finding], further: Iterable[Sequence[Finding]]) -> list[Finding]:
    """``said`` of a run, with what the rules find of the targets of ``further`` runs."""
    found = list(said)
    for other in further:
        free = list(range(len(found)))
        for f in other:
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
