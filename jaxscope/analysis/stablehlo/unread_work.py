"""Find computations in the body of a loop whose results are stacked, but read for few iterations only.

XLA computes them in every iteration: it does not know which part of the stacked results a later operation
reads (measured on a CPU with JAX 0.10 and 0.12: a simulation whose pair distribution is computed in each of
4,000 iterations and read for every 40th takes 17.5 s, and 9.6 s if it is computed for every 40th).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jaxscope.analysis.stablehlo import stacked_results, work
from jaxscope.analysis.stablehlo.flow import Flow
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, Module
from jaxscope.analysis.stablehlo.sources import LOOPS, Sources
from jaxscope.schema.keys import Frame

SHARE = 0.1  # of the operations in loops: less is left out
LINES = 3


class UnreadWork(msgspec.Struct, frozen=True):
    """Work in the body of a loop whose results are read for few iterations.

    Attributes:
      operations: the number of arithmetic operations of this work in one iteration.
      share: the share of the operations in the program's loops that could be saved, from 0 to 1.
      read: the share of the stacked results that the program reads, from 0 to 1.
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
    that also serves another result of the loop is not included."""
    stacked = {
        loop: whole
        for loop, results in stacked_results.by_loop(module, sources).items()
        if (whole := {type: one for type, one in results.items() if one.whole})
    }
    if not stacked:
        return []
    shares, flow, found = work.Shares(module, sources), Flow(module), []
    for loop, results in stacked.items():
        unread = _Unread(flow, loop, results)
        counts = unread.counts()
        operations = sum(counts.values())
        read = max(one.share for one in results.values())
        of_loops = shares.of(unread.last, operations * sources.times[module.ops[loop].function])
        if not operations or of_loops is None or of_loops * (1 - read) < SHARE:
            continue
        by_line: dict[Frame, int] = {}
        largest = max(results.values(), key=lambda one: one.bytes)
        for index, n in counts.items():
            frame = sources.frame(index)
            if frame is not None and n:
                by_line[frame] = by_line.get(frame, 0) + n
        lines = tuple(sorted(by_line, key=lambda f: -by_line[f])[:LINES])
        share = of_loops * (1 - read)
        found.append(UnreadWork(operations, share, read, largest.source, largest.read_at, lines))
    return sorted(found, key=lambda u: -u.share)


class _Unread:
    """The operations of a loop's body that only certain results of the loop need.

    Attributes:
      last: the index of the ``return`` of the loop's body.
    """

    def __init__(self, flow: Flow, loop: int, types: Iterable[str]) -> None:
        self._flow, self._ops = flow, flow.module.ops
        self._loop = loop
        inside = [i for i in range(loop + 1, self._end(loop)) if self._ops[i].parent == loop]
        self.last = max(inside, default=loop)
        self._body = [i for i in inside if self._ops[i].block == self._ops[self.last].block]
        self._needed = set[int]()
        self._waiting: list[tuple[int, int]] = []  # (operation, number of the result that is needed)
        left_out = set(types)
        for index in inside:
            if index not in self._body:  # the condition of the loop
                self._need(index)
        end, outputs = self._ops[self.last], self._ops[loop].outputs
        for n, operand, pick in self._operands(self.last):
            if operand >= 0 and (len(outputs) != len(end.inputs) or outputs[n] not in left_out):
                self._waiting.append((operand, pick))
        for index in self._body:
            if not self._ops[index].results and index != self.last:
                self._need(index)
        self._follow()

    def counts(self) -> dict[int, int]:
        """Return the number of arithmetic operations of each operation that is not needed: index -> number,
        in one iteration. Operations in functions that the body calls are included."""
        found: dict[int, int] = {}
        self._count(self._body, found, 0)
        return found

    def _count(self, indices: Iterable[int], found: dict[int, int], depth: int) -> None:
        for index in indices:
            op = self._ops[index]
            if index == self.last or stacked_results.is_write(op):
                continue
            callee = self._flow.callee(op)
            if callee is not None and depth < stacked_results.MOST:
                function = self._flow.module.functions[callee]
                own = [i for i in range(function.first, function.end) if self._ops[i].parent is None]
                self._count(own, found, depth + 1)
            elif index not in self._needed:
                found[index] = found.get(index, 0) + work.operations(op)
                self._count(self._nested_in(index), found, depth + 1)

    def _nested_in(self, index: int) -> list[int]:
        """Return the operations in the regions of the operation ``index`` if it is a loop. A reduction or a
        sort counts its regions itself. A conditional may run its branches as rarely as they are read."""
        if self._ops[index].name not in LOOPS:
            return []
        return [i for i in range(index + 1, self._end(index)) if self._ops[i].parent == index]

    def _end(self, index: int) -> int:
        """Return the index behind the last operation in the regions of the operation ``index``."""
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
        """Mark the operation ``index`` and the operations in its regions as needed, and follow their operands
        later."""
        if index in self._needed:
            return
        for inner in range(index, self._end(index)):
            self._needed.add(inner)
            self._waiting += [(operand, pick) for _, operand, pick in self._operands(inner) if operand >= 0]
            if inner != index and self._flow.callee(self._ops[inner]) is not None:
                self._waiting += [(inner, k) for k in range(self._ops[inner].results)]

    def _follow(self) -> None:
        seen = set[tuple[int, int]]()
        while self._waiting:
            index, pick = self._waiting.pop()
            if (index, pick) in seen or (index <= self._loop and self._is_before(index)):
                continue
            seen.add((index, pick))
            self._need(index)
            callee = self._flow.callee(self._ops[index])
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
        """Return whether the operation ``index`` is in the function of the loop, before the loop."""
        return self._ops[index].function == self._ops[self._loop].function
