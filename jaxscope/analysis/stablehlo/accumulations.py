"""Find all-reduces in a loop whose results the loop only adds up. One all-reduce of the sum after the loop
gives the same result."""

from __future__ import annotations

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, SCALES, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

SUM = "stablehlo.all_reduce"
SAME = frozenset({"stablehlo.convert", "stablehlo.negate"})


class Accumulated(msgspec.Struct, frozen=True):
    """The all-reduces of one line of the user's code in the body of a loop, whose results the loop only adds
    to values that it carries.

    Attributes:
      count: number of all-reduces in the text of the loop's body, not of their executions.
      bytes: bytes of their results on one device in one iteration. Unknown sizes count 0.
      source: the line; None: unknown.
    """

    count: int
    bytes: int
    source: Frame | None


def find(module: Module, sources: Sources) -> list[Accumulated]:
    """Return the all-reduces in loops whose results the loops only add up, with one item for each line of the
    user's code."""
    flow = Flow(module)
    found: dict[Frame | None, tuple[int, int]] = {}
    for index, op in enumerate(module.ops):
        if op.name != SUM or not sources.times[op.function] or not sources.in_loop(index):
            continue
        after = flow.users.get(index, [])
        if not after or not all(_is_added_up(flow, index, user) for user in after):
            continue
        sizes = [types.tensor(text).bytes for text in op.outputs]
        count, size = found.get(sources.frame(index), (0, 0))
        found[sources.frame(index)] = count + 1, size + sum(n or 0 for n in sizes)
    return [Accumulated(count, size, source) for source, (count, size) in found.items()]


def _is_added_up(flow: Flow, value: int, user: int) -> bool:
    """Return whether the operation ``user`` adds the result of the operation ``value`` to a value that a loop
    carries, and the loop only returns the sum (``carry + result``). Before the addition, the result may be
    converted, negated or scaled by a constant."""
    ops = flow.module.ops
    while ops[user].name in SAME or (ops[user].name in SCALES and _by_a_constant(flow, user, value)):
        after = flow.users.get(user, [])
        if len(after) != 1:
            return False
        value, user = user, after[0]
    op = ops[user]
    others = [operand for operand in op.operands if operand != value]
    if op.name != "stablehlo.add" or any(operand >= 0 for operand in others):
        return False
    return all(ops[last].name in NOT_OPERATIONS for last in flow.users.get(user, []))


def _by_a_constant(flow: Flow, index: int, value: int) -> bool:
    """Return whether all operands of the operation ``index`` except the result of the operation ``value`` are
    constants."""
    op = flow.module.ops[index]
    return len(op.operands) == len(op.inputs) and all(
        operand == value or flow.constant(flow.operand(ReachedValue(index), k)) is not None
        for k, operand in enumerate(op.operands)
    )
