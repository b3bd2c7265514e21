"""Sum over the exclusive branches of conditionals.

One run of a conditional runs one of its branches. A sum over a program is therefore at least that with the
smallest branch of each conditional, and at most that with the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from jaxscope.analysis.hlo.calls import CallGraph

# Conditionals in conditionals: a deeper computation of a hostile text may run or not.
MAX_DEPTH = 16


class Branch(msgspec.Struct, frozen=True, gc=False):
    """Branch ``number`` of the ``of`` branches of a conditional, which is named
    ``computation/instruction``.
    """

    conditional: str
    number: int
    of: int


Path = tuple[Branch, ...]  # from the outermost conditional to the innermost
N = TypeVar("N", int, float)


def paths(graph: CallGraph) -> dict[str, Path]:
    """Return the branches that each reachable computation stands in; ``()``: it runs in each call.

    A computation that is called from different branches counts as a branch of its own beside an empty one.
    """
    found: dict[str, Path] = {}
    for name in graph.in_call_order:
        callers: list[Path] = []
        for call in graph.callers.get(name, ()):
            around = found.get(call.caller.name)
            if around is None:
                continue
            if call.instruction.operation == "conditional":
                every = graph.of(call.caller, call.instruction)
                number = next((n for n, other in enumerate(every) if other is call), 0)
                around = (*around, Branch(f"{call.caller.name}/{call.instruction.name}", number, len(every)))
            callers.append(around)
        common = _common(callers)
        if any(path != common for path in callers):
            common = (*common, Branch(f"{name}/", 0, 2))
        if len(common) > MAX_DEPTH:
            common = (*common[: MAX_DEPTH - 1], Branch(f"{name}/", 0, 2))
        found[name] = common
    return found


def _common(several: Sequence[Path]) -> Path:
    shortest = min(several, key=len, default=())
    for place, branch in enumerate(shortest):
        if any(path[place] != branch for path in several):
            return shortest[:place]
    return shortest


def smallest(rows: Iterable[tuple[Path, N]]) -> N:
    """Return the sum of the values, with the smallest branch of each conditional."""
    return _total(list(rows), min, 0)


def largest(rows: Iterable[tuple[Path, N]]) -> N:
    """Return the sum of the values, with the largest branch of each conditional."""
    return _total(list(rows), max, 0)


def _total(rows: Sequence[tuple[Path, N]], pick: Callable[[Iterable[N]], N], depth: int) -> N:
    total: N = 0
    inside: dict[str, dict[int, list[tuple[Path, N]]]] = {}
    branches: dict[str, int] = {}
    for path, value in rows:
        if len(path) == depth:
            total += value
        else:
            branch = path[depth]
            branches[branch.conditional] = branch.of
            inside.setdefault(branch.conditional, {}).setdefault(branch.number, []).append((path, value))
    for conditional, by_number in inside.items():
        values = [_total(several, pick, depth + 1) for several in by_number.values()]
        if len(values) < branches[conditional]:
            values.append(0)
        total += pick(values)
    return total


class Bounds(msgspec.Struct, frozen=True):
    """A sum that is between ``least`` and ``most``; None: there is no upper bound."""

    least: int
    most: int | None

    @property
    def exact(self) -> int | None:
        return self.least if self.least == self.most else None


def bounds_of(rows: Iterable[tuple[Path, int | None]]) -> Bounds:
    """Return the bounds of the sum of the values; an unknown one is at least 0."""
    given = list(rows)
    known = [(path, value) for path, value in given if value is not None]
    least = smallest(known)
    if len(known) < len(given):
        return Bounds(least, None)
    return Bounds(least, largest(known) if any(path for path, _ in known) else least)
