"""Find computations in the body of a loop whose results are stacked, but read for few iterations only.

XLA computes them in every iteration: it does not know which part of the stacked results a later operation
reads (measured on a CPU with JAX 0.10 and 0.12: a simulation whose pair distribution is computed in each of
4,000 iterations and read for every 40th takes 17.5 s, and 9.6 s if it is computed for every 40th).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from jaxscope.analysis.stablehlo import stacked_results, work
from jaxscope.analysis.stablehlo.executions import Executions
from jaxscope.analysis.stablehlo.flow import Flow
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, Module
from jaxscope.analysis.stablehlo.sources import LOOPS, Sources
from jaxscope.schema.keys import Frame

SHARE = 0.1  # of the operations of the program: less is left out


class UnreadWork(msgspec.Struct, frozen=True):
    """Work in the body of a loop whose results are read for few iterations.

    Attributes:
      operations: the number of arithmetic operations of this work in one call of the program.
      share: the share of the program's arithmetic operations that could be saved, from 0 to 1.
      read: the share of the stacked results that the program reads, from 0 to 1; the largest if results of
        several types are stacked.
      source: the line of the user's code that calls the scan; None: unknown.
      read_at: a line of the user's code that reads the results; None: unknown.
      lines: the lines of the user's code with the most of these operations, at most three.
    """

    operations: int
    share: float
    read: float
    source: Frame | None
    read_at: Frame | None
    lines: tuple[Frame, ...]


def find(module: Module, sources: Sources) -> list[UnreadWork]:
    """Return work in bodies of loops whose results are read for few iterations, the largest share first. Work
    with less than SHARE (a tenth) of the program's operations is left out. Work that also serves another
    result of the loop is not included."""
    stacked = {
        loop: whole
        for loop, results in stacked_results.by_loop(module, sources).items()
        if (whole := {type: one for type, one in results.items() if one.whole})
    }
    executions = Executions(module, sources)
    total = _total(module, sources, executions) if stacked else None
    if not total:
        return []
    flow, found = Flow(module), []
    for loop, results in stacked.items():
        unread = _Unread(flow, executions, loop, {k for one in results.values() for k in one.results})
        counts = unread.counts()
        operations = sum(counts.values()) if counts is not None else 0
        read = max(one.share for one in results.values())
        share = operations * (1 - read) / total
        if counts is None or share < SHARE:
            continue
        largest = max(results.values(), key=lambda one: one.bytes)
        lines = sources.costliest_lines(counts)
        found.append(UnreadWork(operations, share, read, largest.source, largest.read_at, lines))
    return sorted(found, key=lambda u: -u.share)


def _total(module: Module, sources: Sources, executions: Executions) -> int | None:
    """Return the number of arithmetic operations of one call of the program, or None if it has a loop with an
    unknown number of iterations. Operations in branches count as if all branches ran once."""
    total = 0
    for index, op in enumerate(module.ops):
        times = sources.times[op.function]
        if not times:
            continue
        if op.name in LOOPS and executions.iterations(index) is None:
            return None
        executed = executions.of(index)
        total += (times if executed is None else executed) * work.operations(op)
    return total


class _Unread:
    """The operations of a loop's body that only the results ``left_out`` (numbers) of the loop need.

    Attributes:
      last: the index of the ``return`` of the loop's body.
    """

    def __init__(self, flow: Flow, executions: Executions, loop: int, left_out: Collection[int]) -> None:
        self._flow, self._ops, self._executions = flow, flow.module.ops, executions
        self._loop = loop
        inside = [i for i in range(loop + 1, self._end(loop)) if self._ops[i].parent == loop]
        self.last = max(inside, default=loop)
        self._body = [i for i in inside if self._ops[i].block == self._ops[self.last].block]
        self._needed = set[int]()
        self._waiting: list[tuple[int, int]] = []  # (operation, number of the result that is needed)
        for index in inside:
            if index not in self._body:  # the condition of the loop
                self._need(index)
        for n, operand, pick in self._operands(self.last):
            if operand >= 0 and n not in left_out:
                self._waiting.append((operand, pick))
        for index in self._body:
            if not self._ops[index].results and index != self.last:
                self._need(index)
        self._follow()

    def counts(self) -> dict[int, int] | None:
        """Return the number of arithmetic operations of each operation that is not needed: index -> number,
        in one call of the program. Operations in functions that the body calls are included. None if it is
        unknown how often the body runs."""
        times = self._executions.of(self.last)
        if times is None:
            return None
        found: dict[int, int] = {}
        self._count(self._body, found, times, 0)
        return found

    def _count(self, indices: Iterable[int], counts: dict[int, int], times: int, depth: int) -> None:
        """Add the operations ``indices`` that are not needed to ``counts``, each ``times`` times."""
        for index in indices:
            op = self._ops[index]
            if index == self.last or stacked_results.is_write(self._flow.module, index):
                continue
            callee = self._flow.module.callee(op)
            if callee is not None and depth < stacked_results.MOST:
                function = self._flow.module.functions[callee]
                own = [i for i in range(function.first, function.end) if self._ops[i].parent is None]
                self._count(own, counts, times, depth + 1)
            elif index not in self._needed:
                counts[index] = counts.get(index, 0) + times * work.operations(op)
                iterations = self._executions.iterations(index) or 1
                self._count(self._nested_in(index), counts, times * iterations, depth + 1)

    def _nested_in(self, index: int) -> list[int]:
        """Return the operations in the regions of the operation ``index`` if it is a loop, else an empty
        list: ``work.operations`` counts the regions of a reduction or a sort, and a conditional may run its
        branch only in the iterations that are read."""
        if self._ops[index].name not in LOOPS:
            return []
        return [i for i in range(index + 1, self._end(index)) if self._ops[i].parent == index]

    def _end(self, index: int) -> int:
        """Return the index after the last operation in the regions of the operation ``index``."""
        function = self._flow.module.functions[self._ops[index].function]
        end = index + 1
        inside = {index}
        while end < function.end and self._ops[end].parent in inside:
            inside.add(end)
            end += 1
        return end

    def _operands(self, index: int) -> list[tuple[int, int, int]]:
        """Return for each known operand of the operation ``index``: (its position, the operation that makes
        it, the number of the result)."""
        op = self._ops[index]
        places, picks = op.places or range(len(op.operands)), op.picks or (0,) * len(op.operands)
        return [*zip(places, op.operands, picks, strict=True)]

    def _need(self, index: int) -> None:
        """Mark the operation ``index`` and the operations in its regions as needed, and add their operands to
        ``_waiting``."""
        if index in self._needed:
            return
        for inner in range(index, self._end(index)):
            self._needed.add(inner)
            self._waiting += [(operand, pick) for _, operand, pick in self._operands(inner) if operand >= 0]
            if inner != index and self._flow.module.callee(self._ops[inner]) is not None:
                self._waiting += [(inner, k) for k in range(self._ops[inner].results)]

    def _follow(self) -> None:
        """Mark all operations that the values in ``_waiting`` need, also in called functions."""
        seen = set[tuple[int, int]]()
        while self._waiting:
            index, pick = self._waiting.pop()
            if (index, pick) in seen or (index <= self._loop and self._is_before(index)):
                continue
            seen.add((index, pick))
            self._need(index)
            callee = self._flow.module.callee(self._ops[index])
            if callee is None:
                continue
            function = self._flow.module.functions[callee]
            end = function.end - 1
            if function.end > function.first and self._ops[end].name in NOT_OPERATIONS:
                made = [(operand, k) for n, operand, k in self._operands(end) if n == pick and operand >= 0]
                self._waiting += made
            for inner in range(function.first, function.end):
                if not self._ops[inner].results and self._ops[inner].name not in NOT_OPERATIONS:
                    self._need(inner)

    def _is_before(self, index: int) -> bool:
        """Return whether the operation ``index``, which does not come after the loop in the text, is in the
        loop's function, and so before the loop."""
        return self._ops[index].function == self._ops[self._loop].function
