"""Group recompiles that come from the same change of size. An odd batch recompiles every function and every
eager operation that it passes through, but is one problem with one fix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec

from jaxscope.analysis.causes import SHAPES
from jaxscope.model import causes
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import Evidence
from jaxscope.schema.keys import Frame, Key
from jaxscope.schema.messages import Count, Field, Message, Names, Words, message

LINES = 4  # lines with eager operations that are named one by one
NAMES = 3  # functions that are named, or operations of one line
WIDE = frozenset({"float64", "complex128", "int64", "uint64"})


class Miss(msgspec.Struct, frozen=True):
    """A call that recompiled.

    Attributes:
      compilation: the call.
      step: the training step; None: unknown, or not needed.
      cause: the difference from an earlier call that made the cache miss.
    """

    compilation: Compilation
    step: int | None
    cause: Cause


class Change(msgspec.Struct, frozen=True):
    """Recompiles that one change of the size of an array explains.

    Attributes:
      group: the recompiles of the function that is named first: a function of the user, if there is one.
      others: the recompiles of other functions and of operations outside jit, one list for each function and
        cause.
    """

    group: list[Miss]
    others: list[list[Miss]]

    @property
    def every(self) -> list[Miss]:
        return [m for g in (self.group, *self.others) for m in g]

    @property
    def seconds(self) -> float:
        return sum(m.compilation.seconds for m in self.every)

    @property
    def eager(self) -> bool:
        """Return whether an operation outside jit recompiled because of the change."""
        return any(m.compilation.function.operation for m in self.every)


def together(run: Run, groups: Sequence[list[Miss]]) -> list[Change]:
    """Merge those of ``groups`` that the same change of size explains, such as an odd batch. Each group has
    the recompiles of one function for one cause. Return a ``Change`` for each merged group and for each other
    group, the most seconds first.

    A group is merged with others if each of its recompiles has a change of size (64 became 29) that a
    recompile of the others has, too, in the same process and at most one step apart."""
    spent = [sum(m.compilation.seconds for m in group) for group in groups]
    order = sorted(range(len(groups)), key=lambda i: (groups[i][0].compilation.function.operation, -spent[i]))
    functions = {m.compilation.function.id: m.compilation.function for g in groups for m in g}
    lines = on_their_lines(f for f in functions.values() if f.operation)
    resized = {i: [_places(run, m, lines) for m in groups[i]] for i in order if _of_a_size(groups[i])}
    taken: set[int] = set()
    found: list[tuple[int, Change]] = []
    for first in order:
        if first in taken:
            continue
        taken.add(first)
        members: list[int] = []
        if first in resized:
            met = {place for places in resized[first] for place in places}
            grown = bool(met)
            while grown:
                grown = False
                for i in order:
                    if i not in taken and i in resized and all(_near(places, met) for places in resized[i]):
                        met.update(place for places in resized[i] for place in places)
                        taken.add(i)
                        members.append(i)
                        grown = True
        found.append((first, Change(groups[first], [groups[i] for i in members])))
    return [change for _, change in sorted(found, key=lambda pair: -pair[1].seconds)]


def _of_a_size(group: Sequence[Miss]) -> bool:
    """Return whether a change of size can explain the recompiles of ``group``, which are of one function: all
    causes are changes of shape, or for an operation outside jit, none is a first call."""
    if group[0].compilation.function.operation:
        return all(m.cause.kind != "first" for m in group)
    return all(m.cause.kind in SHAPES for m in group)


def _places(run: Run, miss: Miss, lines: Mapping[str, Compilation]) -> set[tuple[Hashable, int | None]]:
    """Return the changes of size that made the call ``miss`` recompile, as a set of ((process id, size
    before, size now), step). ``lines`` is only for operations outside jit: id of a call -> the earlier call
    to compare it with."""
    pairs = sizes(run, miss.compilation, lines.get(miss.compilation.id))
    return {((miss.compilation.process.id, *pair), miss.step) for pair in pairs}


def _near(places: set[tuple[Hashable, int | None]], met: set[tuple[Hashable, int | None]]) -> bool:
    """Return whether a change in ``places`` is also in ``met``, at most one step apart."""
    return any(
        (what, at) in met
        for what, step in places
        for at in ((None,) if step is None else (step, step - 1, step + 1))
    )


def sizes(run: Run, c: Compilation, before: Compilation | None) -> set[tuple[int, int]]:
    """Return (size before, size now) for each dimension of an argument or a result of the call ``c`` that
    changed since ``before``, an earlier call. If ``before`` is None, compare with the earlier call whose
    cache key is nearest."""
    before = before or causes.compared_with(run, c)
    if before is None or c.key is None or before.key is None:
        return set()
    was = {leaf.path: leaf.shape for leaf in before.key.arguments}
    beside = [(was.get(leaf.path), leaf.shape) for leaf in c.key.arguments]
    if c.traced is not None and before.traced is not None:
        beside += [
            (a.shape, b.shape) for a, b in zip(before.traced.out or (), c.traced.out or (), strict=False)
        ]
    return {
        (m, n)
        for old, new in beside
        if old is not None and new is not None and len(old) == len(new)
        for m, n in zip(old, new, strict=True)
        if isinstance(m, int) and isinstance(n, int) and m != n
    }


def on_their_lines(functions: Iterable[Function]) -> dict[str, Compilation]:
    """Return {id of a call: the earlier call to compare it with} for the calls of ``functions``, operations
    outside jit. The earlier call is the latest one of the same operation on the same line, in the same
    process, and with arguments of the same ranks."""
    before: dict[str, Compilation] = {}
    for f in functions:
        latest: dict[Hashable, Compilation] = {}
        for c in f.compilations:
            if c.site is not None and c.key is not None:
                place = (c.process.id, c.site.file, c.site.line, _ranks(c.key))
                if place in latest:
                    before[c.id] = latest[place]
                latest[place] = c
    return before


def _ranks(key: Key) -> tuple[int | None, ...]:
    return tuple(None if leaf.shape is None else len(leaf.shape) for leaf in key.arguments)


def also(change: Change) -> Message | None:
    """Return a clause about the other functions that recompiled because of ``change``:
    ``; the same change recompiled stage and 7 eager operations``. None if there are no others."""
    if not change.others:
        return None
    names = list(dict.fromkeys(_name(g[0]) for g in change.others if not g[0].compilation.function.operation))
    listed: list[str | Message] = [*names[:NAMES]]
    if len(names) > NAMES:
        listed.append(message("more-functions", n=len(names) - NAMES))
    n = sum(g[0].compilation.function.operation for g in change.others)
    if n:
        listed.append(message("an-eager-operation") if n == 1 else message("eager-operations", n=n))
    return message("also-recompiled", names=Names(tuple(listed)))


def evidence(run: Run, change: Change) -> list[tuple[int, Evidence]]:
    """Return (time of a recompile in nanoseconds, evidence about it) for the other functions that recompiled
    because of ``change``: one entry for each jitted function and cause, and one for each line with operations
    outside jit. If there are more than LINES such lines, the other lines have one entry together."""
    found: list[tuple[int, Evidence]] = []
    lines: dict[tuple[str, int], list[Miss]] = {}
    for group in change.others:
        last = group[-1]
        c = last.compilation
        if c.function.operation and c.site is not None:
            lines.setdefault(c.site.place, []).extend(group)
            continue
        text = message(
            "resized-function",
            call=f"{_name(last)}#{run.number(c)}",
            cause=last.cause,
            times=message("times-in-all", n=len(group)) if len(group) > 1 else None,
        )
        found.append((c.t_ns, _evidence(text, last)))
    for n, ((file, line), misses) in enumerate(sorted(lines.items(), key=lambda item: _when(item[1]))):
        if n == LINES:
            more = Count(len(lines) - LINES, "other line")
            found.append((_when(misses), _evidence(message("resized-elsewhere", lines=more), misses[-1])))
            break
        names = list(dict.fromkeys(_name(m) for m in sorted(misses, key=lambda m: m.compilation.t_ns)))
        at: dict[str, Field] = {"line": Frame(file, line, ""), "at": at_steps(misses)}
        if len(names) == 1:
            operations = message("resized-operation", name=names[0], **at)
        else:
            operations = message("resized-operations", names=Names(tuple(names), NAMES), **at)
        found.append((_when(misses), _evidence(operations, misses[-1])))
    return found


def _evidence(text: Words, miss: Miss) -> Evidence:
    c = miss.compilation
    return Evidence(text, compilation=c.id, program=c.program, source=c.site, step=miss.step)


def _when(misses: Sequence[Miss]) -> int:
    return min(m.compilation.t_ns for m in misses)


def at_steps(misses: Sequence[Miss]) -> Message | None:
    """Return a clause with the training steps of the recompiles ``misses``: `` at step 3`` or `` at steps 3
    to 9``; None if the steps are unknown."""
    steps = sorted({m.step for m in misses if m.step is not None})
    if not steps:
        return None
    if len(steps) == 1:
        return message("at-step", step=steps[0])
    return message("at-steps", first=steps[0], last=steps[-1])


def _name(miss: Miss) -> str:
    return miss.compilation.function.display_name
