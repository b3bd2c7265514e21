"""Sum values, such as bytes, over a program whose conditionals run only one of their branches.

The sum for one call is at least the sum with the smallest branch of each conditional, and at most the sum
with the largest branch of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from jaxscope.analysis.hlo.calls import CallGraph

# The deepest nesting of conditionals that is followed. A computation at a greater depth may or may not run.
MAX_DEPTH = 16


class Branch(msgspec.Struct, frozen=True, gc=False):
    """One branch of a conditional.

    Attributes:
      conditional: the conditional instruction: ``computation/instruction``.
      number: the number of this branch, from 0.
      of: how many branches the conditional has.
    """

    conditional: str
    number: int
    of: int


Path = tuple[Branch, ...]  # from the outermost conditional to the innermost
N = TypeVar("N", int, float)


def paths(graph: CallGraph) -> dict[str, Path]:
    """Return the branches of conditionals that contain each computation: computation name -> (outermost
    branch, ..., innermost branch), ``()`` if no branch contains it. Only the computations in
    ``graph.in_call_order`` are in the result.

    For a computation that is called from several places, only the branches that all places have in common
    count. If a place is in further branches, or the nesting is too deep, the computation may or may not run.
    Then a ``Branch`` of an invented conditional with two branches is added at the end.
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
    """Return the longest path with which all paths in ``several`` begin."""
    shortest = min(several, key=len, default=())
    for place, branch in enumerate(shortest):
        if any(path[place] != branch for path in several):
            return shortest[:place]
    return shortest


def smallest(rows: Iterable[tuple[Path, N]]) -> N:
    """Return the least possible sum of values in one call, with the branch of each conditional that has the
    smallest sum. ``rows`` has (branches of conditionals that contain the value, value) for each value."""
    return _total(list(rows), min, 0)


def largest(rows: Iterable[tuple[Path, N]]) -> N:
    """Return the largest possible sum of values in one call, with the branch of each conditional that has the
    largest sum. ``rows`` has (branches of conditionals that contain the value, value) for each value."""
    return _total(list(rows), max, 0)


def _total(rows: Sequence[tuple[Path, N]], pick: Callable[[Iterable[N]], N], depth: int) -> N:
    """Return the sum of the values in ``rows``, counting one branch of each conditional. ``pick`` (``min`` or
    ``max``) chooses among the sums of the branches; a branch without values has the sum 0. All paths in
    ``rows`` begin with the same ``depth`` branches, which are already chosen."""
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
    """A lower and an upper bound of a sum. ``most`` is None if there is no upper bound."""

    least: int
    most: int | None

    @property
    def exact(self) -> int | None:
        """The sum if it is known exactly, else None."""
        return self.least if self.least == self.most else None


def bounds_of(rows: Iterable[tuple[Path, int | None]]) -> Bounds:
    """Return the least and the largest possible sum of the values in one call of a program whose conditionals
    run one branch each. ``rows`` has (branches of conditionals that contain the value, value) for each value.
    A value of None is unknown: it counts as 0, and there is no upper bound."""
    given = list(rows)
    known = [(path, value) for path, value in given if value is not None]
    least = smallest(known)
    if len(known) < len(given):
        return Bounds(least, None)
    return Bounds(least, largest(known) if any(path for path, _ in known) else least)
