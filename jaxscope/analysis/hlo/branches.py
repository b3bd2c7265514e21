"""Sum values over a program whose conditionals run only one of their branches.

One execution of a conditional runs one branch. So the sum is at least that with the smallest branch of each
conditional, and at most that with the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from jaxscope.analysis.hlo.calls import CallGraph

# The deepest nesting of conditionals that is followed. A computation below it counts as one that may run.
MAX_DEPTH = 16


class Branch(msgspec.Struct, frozen=True, gc=False):
    """A branch of a conditional.

    Attributes:
      conditional: the conditional: ``computation/instruction``.
      number: the number of the branch, from 0.
      of: how many branches the conditional has.
    """

    conditional: str
    number: int
    of: int


Path = tuple[Branch, ...]  # from the outermost conditional to the innermost
N = TypeVar("N", int, float)


def paths(graph: CallGraph) -> dict[str, Path]:
    """Return the branches that contain each reachable computation, the outermost first, by its name; ``()``:
    it runs in each call.

    A computation that is called from different branches counts as a branch that may run or not.
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
    """Return the sum of the values, with only the branch of each conditional that has the smallest sum.

    Args:
      rows: (branches that contain the value, value).
    """
    return _total(list(rows), min, 0)


def largest(rows: Iterable[tuple[Path, N]]) -> N:
    """Return the sum of the values, with only the branch of each conditional that has the largest sum.

    Args:
      rows: (branches that contain the value, value).
    """
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
    """A lower and an upper bound of a sum.

    Attributes:
      least: the lower bound.
      most: the upper bound; None: there is none.
    """

    least: int
    most: int | None

    @property
    def exact(self) -> int | None:
        return self.least if self.least == self.most else None


def bounds_of(rows: Iterable[tuple[Path, int | None]]) -> Bounds:
    """Return the bounds of the sum of the values. If a value is unknown (None), it counts as 0 and there is
    no upper bound.

    Args:
      rows: (branches that contain the value, value).
    """
    given = list(rows)
    known = [(path, value) for path, value in given if value is not None]
    least = smallest(known)
    if len(known) < len(given):
        return Bounds(least, None)
    return Bounds(least, largest(known) if any(path for path, _ in known) else least)
