"""Find out whether the iterations of an unrolled Python loop depend on each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jaxscope.analysis.stablehlo.module import Module

# Operations through which a running sum may go: ``total = total + x``
_OF_SUMS = frozenset(
    {"stablehlo.add", "stablehlo.convert", "stablehlo.reshape", "stablehlo.broadcast_in_dim"}
)
MOST = 5000  # operations in an iteration; of more, only the values passed on are looked at


class Carry(NamedTuple):
    """How an iteration of a loop depends on the one before.

    Attributes:
      carried: each iteration computes with what the one before computed.
      summed: this is so only for running sums of which the program reads nothing but the last value.
    """

    carried: bool
    summed: bool


def between(module: Module, iterations: Sequence[Sequence[int]]) -> Carry:
    """Return how the iterations of a repeated block depend on each other. ``iterations`` has for each
    iteration the indices of its operations in ``Module.ops``; the operations at the same position of all
    iterations are equal.

    The block need not begin where the body of the Python loop begins. The positions form a graph in which an
    edge leads from an operation to those that read its result, in the same or in a later iteration. The
    iterations depend on each other if this graph has a cycle.
    """
    position = {i: (k, at) for k, turn in enumerate(iterations) for at, i in enumerate(turn)}
    read: Counter[tuple[int, int, int]] = Counter()  # (reader, read, iterations between them) -> how often
    times: Counter[int] = Counter()  # index of an operation -> how many operands it is
    for index, operands in _operands(module, iterations):
        times.update(operands)
        here = position.get(index)
        for operand in operands if here is not None else ():
            there = position.get(operand)
            if here is not None and there is not None:
                read[here[1], there[1], here[0] - there[0]] += 1
    steady = [edge for edge, n in read.items() if 2 * n > len(iterations) - edge[2] > 0]
    later = [(reader, made) for reader, made, turns in steady if turns > 0]
    if not later or len(iterations[0]) > MOST:
        return Carry(bool(later), False)
    reaches = _reachable(len(iterations[0]), [(made, reader) for reader, made, _ in steady])
    on_cycles = 0
    for reader, made in later:
        if reaches[reader] >> made & 1:
            on_cycles |= sum(1 << at for at in _bits(reaches[reader]) if reaches[at] >> made & 1)
    if not on_cycles:
        return Carry(False, False)
    sums = all(
        module.ops[turn[at]].name in _OF_SUMS and times[turn[at]] <= 1
        for at in _bits(on_cycles)
        for turn in iterations[:-1]
    )
    return Carry(True, sums)


def _operands(module: Module, iterations: Sequence[Sequence[int]]) -> list[tuple[int, tuple[int, ...]]]:
    """Return (index, operands) for each operation of the function with these iterations. An operation in a
    region has the index of the operation in the iterations' block that contains it."""
    here = module.ops[iterations[0][0]]
    function = module.functions[here.function]
    found = []
    for index in range(function.first, function.end):
        outer = index
        while module.ops[outer].block != here.block and (parent := module.ops[outer].parent) is not None:
            outer = parent
        found.append((outer, module.ops[index].operands))
    return found


def _reachable(size: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each of ``size`` positions the positions that can be reached from it along ``edges``, (from,
    to), as the bits of an integer. A position reaches itself."""
    following: list[list[int]] = [[] for _ in range(size)]
    for begin, end in edges:
        following[begin].append(end)
    reaches = [1 << at for at in range(size)]
    changed = True
    while changed:
        changed = False
        for at in reversed(range(size)):
            found = reaches[at]
            for end in following[at]:
                found |= reaches[end]
            changed = changed or found != reaches[at]
            reaches[at] = found
    return reaches


def _bits(number: int) -> list[int]:
    return [at for at in range(number.bit_length()) if number >> at & 1]
