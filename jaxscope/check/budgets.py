"""JX191 to JX592: more than a limit allows, in what figure, of which function, and where the most of it comes from.

A figure that is not known is told as such (JX901), never taken for kept.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from jaxscope.check import gate
from jaxscope.check.gate import Part, Told, not_known, within
from jaxscope.check.limits import Limits
from jaxscope.check.program_limits import programs
from jaxscope.model import causes
from jaxscope.model.fold import MOST_SECONDS
from jaxscope.model.names import matches, number_of
from jaxscope.model.occupied import Occupied
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import recompiles
from jaxscope.rules.programs import name_of
from jaxscope.schema.findings import CERTAIN, ERROR, Cause, Evidence, Finding

COMPILATIONS, SECONDS = "JX191", "JX291"
MOST = 3  # contributors named


def over(
    run: Run,
    limits: Limits,
    functions: Mapping[str, Limits] | None = None,
    part: Part | None = None,
    *,
    programs: bool = True,
    late: Sequence[Told] = (),
) -> list[Finding]:
    """Where ``run`` has more than is allowed, or it is not known.

    Args:
      limits: compilations and seconds of the whole run; the other figures of each program of the user's functions.
      functions: limits for each function that a name or pattern means; where one is set for a figure of a
        program, the general one does not hold for that function.
      part: only these compilations.
      programs: hold each program to its limits, too; False where those for another machine are (aimed).
      late: what is told already of compilations that came too late. Compilations that are too many for these alone
        are no finding of their own: see ``mentioned``.
    """
    told = {id for t in late for id in t.compilations}
    return [
        *_no_such_axes(run, [limits, *(functions or {}).values()]),
        *(
            _too_many(run, count, told)
            for count in _counts(run, limits, functions or {}, part)
            if not count.settled(told)
        ),
        *_over(run, limits, functions or {}, part, programs),
    ]


def mentioned(
    run: Run, limits: Limits, functions: Mapping[str, Limits] | None, late: Sequence[Told]
) -> list[Finding]:
    """The findings of ``late``, with what they alone made too many compilations of."""
    told = {id for t in late for id in t.compilations}
    extra: dict[int, list[Evidence]] = {}
    for count in _counts(run, limits, functions or {}, None):
        ids = {c.id for c in count.made}
        at = max(range(len(late)), key=lambda i: len(ids & late[i].compilations), default=None)
        if at is not None and count.settled(told):
            text = f"with that {count.text} ({COMPILATIONS})"
            extra.setdefault(at, []).append(Evidence(text, source=late[at].finding.source))
    return [
        msgspec.structs.replace(t.finding, evidence=[*t.finding.evidence, *extra.get(i, ())])
        for i, t in enumerate(late)
    ]


def _no_such_axes(run: Run, limits: Sequence[Limits]) -> Iterator[Finding]:
    """Limits on collectives over an axis that no mesh of the run has: a limit that nothing can ever exceed."""
    asked = {k.partition("@")[2] for own in limits for k in (*own.collectives, *own.collective_bytes)} - {""}
    there = axes(run) if asked else set()
    for axis in sorted(asked - there) if there else ():
        near = difflib.get_close_matches(axis, there, 1, 0.5)
        fix = f"did you mean {near[0]}?" if near else f"the axes of this run: {', '.join(sorted(there))}"
        text = f"a limit names the mesh axis {axis!r}, which no mesh of this run has"
        yield msgspec.structs.replace(not_known(text), severity=ERROR, fix=fix)


def axes(run: Run) -> set[str]:
    """The names of all mesh axes that an array, a jit or a program of ``run`` has to do with."""
    shardings = [
        s
        for c in run.compilations.values()
        for listed in (
            c.key.shardings if c.key is not None else (),
            (c.lowered.asked or ()) if c.lowered is not None else (),
            (*c.compiled.in_shardings, *c.compiled.out_shardings) if c.compiled is not None else (),
        )
        for s in listed
    ]
    named = {axis for s in shardings for axis, *_ in s.mesh or ()}
    for program in run.programs.values():
        hlo = run.texts_of(program).hlo
        for collective in hlo.collectives if hlo is not None else ():
            named |= {a.partition(":")[0] for a in collective.axes or ()}
    return named


def _over(
    run: Run, limits: Limits, functions: Mapping[str, Limits], part: Part | None, each: bool
) -> Iterator[Finding]:
    users = [f for f in run.functions.values() if f.user]
    if limits.seconds is not None:
        yield from _seconds_of_run(run, limits.seconds, part)
    special: dict[str, list[Limits]] = {}
    for pattern, own in functions.items():
        meant = [f for f in users if matches(f, pattern)]
        if not any(matches(f, pattern) for f in run.functions.values()) and not run.defined(pattern):
            yield gate.no_such_function(run, pattern)
        for f in meant:
            special.setdefault(f.id, []).append(own)
            if own.seconds is not None:
                yield from _seconds_of(f, own.seconds, part)
    for f in users if each else ():
        for allowed in [*special.get(f.id, ()), remaining(limits, special.get(f.id, ()))]:
            yield from programs(run, f, allowed, part)


def remaining(limits: Limits, special: Sequence[Limits]) -> Limits:
    """The general limits that no special one takes the place of."""
    nothing = Limits()
    taken = {
        name
        for own in special
        for name in Limits.__struct_fields__
        if getattr(own, name) != getattr(nothing, name)
    }
    return msgspec.structs.replace(limits, **{name: getattr(nothing, name) for name in taken})


# -- figures of a run -----------------------------------------------------------------------------------------


class _Count(msgspec.Struct, frozen=True):
    """More compilations than the limit allows: ``made``, in order of time. ``who``: ``train_step was``."""

    who: str
    limit: int
    made: list[Compilation]
    several: bool

    @property
    def text(self) -> str:
        return f"{self.who} compiled {_times(len(self.made))}, {self.limit:,} allowed"

    def settled(self, told: Collection[str]) -> bool:
        """Would the limit hold without those that are told already?"""
        return sum(c.id not in told for c in self.made) <= self.limit


def _counts(run: Run, limits: Limits, functions: Mapping[str, Limits], part: Part | None) -> Iterator[_Count]:
    users = [f for f in run.functions.values() if f.user]
    wanted = [("your functions were", limits.compilations, users)]
    wanted += [
        (f"{name_of(f)} was", own.compilations, [f])
        for pattern, own in functions.items()
        for f in users
        if matches(f, pattern)
    ]
    for who, limit, whose in wanted:
        made = [c for f in whose for c in within(part, f.compilations) if c.reached_phases & 4]
        if limit is not None and len(made) > limit:
            yield _Count(who, limit, sorted(made, key=lambda c: c.t_ns), len(users) > 1 and len(whose) > 1)


def _too_many(run: Run, count: _Count, told: Collection[str]) -> Finding:
    """``told``: compilations of which another finding speaks; this one is about the others."""
    others = [c for c in count.made if c.id not in told]
    n = Counter(c.function.id for c in others)
    busiest = sorted({c.function.id: c.function for c in others}.values(), key=lambda f: -n[f.id])
    some = ", ".join(f"{name_of(f)} {_times(n[f.id])}" for f in busiest[:MOST])
    mine = [c for c in others if c.function is busiest[0]]
    last = mine[-1]
    cause = causes.of(run, last)[0]
    listed = f" ({some})" if count.several else ""
    which = (
        f"; {len(count.made) - len(others):,} came too late ({gate.CODE}), the others"
        if len(others) < len(count.made)
        else ""
    )
    return Finding(
        COMPILATIONS, ERROR, CERTAIN,
        f"{count.text}{which}{listed}; most recently {name_of(busiest[0])}: {cause.text}",
        busiest[0].id, last.site,
        [
            Evidence(f"{name_of(c.function)}#{number_of(run, c)}{_step(c)}: {causes.of(run, c)[0].text}",
                     compilation=c.id, program=c.program, source=c.site, step=c.step)
            for c in mine[-5:]
        ],
        f"{_alike(run, mine, cause)}, or allow more compilations",
        sum(c.seconds for c in count.made),
    )  # fmt: skip


def _alike(run: Run, mine: Sequence[Compilation], cause: Cause) -> str:
    """What makes compilations of one function fewer: the advice about the cause that it met last."""
    if cause.kind == "first":
        return "put functions that are called one after the other under one jit"
    same = [(c, causes.of(run, c)[0]) for c in mine]
    same = [(c, why) for c, why in same if (why.kind, why.path) == (cause.kind, cause.path)]
    fix = recompiles.advice(recompiles.group_of(run, [c for c, _ in same], [why for _, why in same]))
    return fix or "make its calls alike in what the finding names"


def _step(c: Compilation) -> str:
    return f" at step {c.step:,}" if c.step is not None else ""


def _seconds_of_run(run: Run, limit: float, part: Part | None) -> Iterator[Finding]:
    everything = [c for c in within(part, list(run.compilations.values())) if c.entry != "nested"]
    spent = seconds_within(everything) if part is not None else run.compiling_seconds
    if spent is None:
        yield not_known("how long tracing, lowering and compiling took is not known")
        return
    if spent <= limit:
        return
    by_function: dict[str, float] = {}
    for c in everything:
        by_function[c.function.id] = by_function.get(c.function.id, 0.0) + c.seconds
    slowest = sorted(by_function, key=lambda i: -by_function[i])
    some = ", ".join(f"{name_of(run.functions[i])} {_s(by_function[i])}" for i in slowest[:MOST])
    worst = max(everything, key=lambda c: c.seconds, default=None)
    yield Finding(
        SECONDS, ERROR, CERTAIN,
        f"tracing, lowering and compiling took {_s(spent)}, {_s(limit)} allowed; the most of it: {some or 'not known'}",
        worst.function.id if worst is not None else None, worst.site if worst is not None else None,
        [Evidence(f"{name_of(worst.function)}: {_s(worst.seconds)}", compilation=worst.id, source=worst.site)]
        if worst is not None else [],
        "compile the slowest less often, or make its program smaller (jaxscope report says of what it consists)",
        spent,
    )  # fmt: skip


def seconds_within(compilations: Sequence[Compilation]) -> float:
    """Wall time during which at least one of them was traced, lowered or compiled: threads do not add up."""
    phases = [
        (event.t_ns, event.seconds)
        for c in compilations
        for event in (c.traced, c.lowered, c.compiled, c.failed)
        if event is not None and event.seconds is not None and 0 <= event.seconds < MOST_SECONDS
    ]
    found = Occupied((end - int(seconds * 1e9), end) for end, seconds in phases).with_spans(()) / 1e9
    # A trace that was found again is timed, and its event is not kept.
    reused = sum(c.trace_seconds or 0.0 for c in compilations if c.traced is None and c.failed is None)
    return found + reused


def _seconds_of(f: Function, limit: float, part: Part | None) -> Iterator[Finding]:
    mine = within(part, f.compilations)
    spent = seconds_within(mine)
    if spent <= limit:
        return
    worst = max(mine, key=lambda c: c.seconds)
    text = f"{name_of(f)} was traced, lowered and compiled for {_s(spent)}, {_s(limit)} allowed"
    yield Finding(
        SECONDS, ERROR, CERTAIN,
        f"{text}; the longest of {len(mine):,} took {_s(worst.seconds)}",
        f.id, worst.site, [Evidence(text, compilation=worst.id, source=worst.site, step=worst.step)],
        "compile it less often, or make its program smaller (jaxscope report says of what it consists)", spent,
    )  # fmt: skip


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _s(value: float) -> str:
    return f"{value:,.1f} s" if value >= 0.95 else f"{value * 1e3:,.0f} ms"
