"""Find gradients of whole tables, such as embeddings, of which a step uses few rows.

The gradient of ``table[rows]`` with respect to ``table`` has the size of the table, and is 0 in other rows.
A step of gradient descent then computes ``table - lr * gradient`` for all rows: XLA does not skip zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import SCALES, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

TIMES = 8  # the table has at least so many times the rows that a step uses
LEAST = 1 << 18  # elements of a table: smaller ones are not listed
_ONE_OPERAND = frozenset({"stablehlo.negate", "stablehlo.convert"})
_SUMS = frozenset({"stablehlo.add", "stablehlo.subtract"})


class RowGradient(msgspec.Struct, frozen=True):
    """A step of gradient descent for a whole table whose gradient is 0 in most rows.

    Attributes:
      shape: the dtype and shape of the table, as text: ``float32[60000,48]``.
      rows: number of rows of the table.
      used: the largest number of rows in which the gradient is not 0.
      operations: arithmetic operations for the whole table: the gradient, its scaling and the subtraction.
      share: the share of ``operations`` in all of the program's operations, from 0 to 1; if the user's code
        has loops, in the operations in loops. None if unknown.
      source: the line of the user's code with the subtraction; None: unknown.
    """

    shape: str
    rows: int
    used: int
    operations: int
    share: float | None
    source: Frame | None


def find(module: Module, sources: Sources) -> list[RowGradient]:
    """Return the steps of gradient descent for whole tables with at least LEAST (262,144) elements, and at
    least TIMES (8) times as many rows as the step uses. Those with the most operations come first."""
    flow = Flow(module)
    tables = {_operand(module, k, 0) for k, op in enumerate(module.ops) if op.name == "stablehlo.gather"}
    scatters = [
        k for k, op in enumerate(module.ops) if op.name == "stablehlo.scatter" and sources.times[op.function]
    ]
    used: dict[int, int] = {}  # operation that is a gradient or its multiple -> rows that are not 0
    dense: dict[int, int] = {}  # such an operation -> operations on the whole table that lead to it
    steps: dict[int, tuple[int, int]] = {}  # subtraction -> (rows, operations on the whole table)
    for k in scatters:
        rows = _rows(flow, k)
        if rows is not None:
            used[k], dense[k] = rows, 1
    for k in range(min(used, default=0), len(module.ops) if used else 0):
        op = module.ops[k]
        gradients = [operand for operand in op.operands if operand in used]
        if not gradients or k in used or module.ops[gradients[0]].function != op.function:
            continue
        places = op.places or range(len(op.operands))
        known = {n for n, operand in zip(places, op.operands, strict=False) if operand in used}
        others = [n for n in range(len(op.inputs)) if n not in known]
        is_step = len(others) == 1 and _operand(module, k, others[0]) in tables
        scaled = op.name in SCALES and len(others) == 1 and _is_scalar(flow, k, others[0])
        rows, count = sum(used[g] for g in gradients), 1 + sum(dense[g] for g in gradients)
        if op.name in _SUMS and is_step:
            steps[k] = rows, count
        elif op.name in _ONE_OPERAND or scaled or (op.name in _SUMS and not others):
            used[k], dense[k] = rows, count
    shares = work.Shares(module, sources) if steps else None
    found = []
    for k, (few, count) in steps.items():
        table = types.tensor(module.ops[k].outputs[0])
        rows, elements = (table.shape or (0,))[0] or 0, table.elements or 0
        if shares is None or rows < TIMES * few:
            continue
        operations = count * elements
        share = shares.of(k, operations * sources.times[module.ops[k].function])
        found.append(RowGradient(_short(table), rows, few, operations, share, sources.frame(k)))
    return sorted(found, key=lambda g: -g.operations)


def _operand(module: Module, index: int, k: int) -> tuple[object, ...]:
    """Return a key for operand ``k`` of the operation at ``index``: equal keys mean the same value. But two
    arguments of one region have equal keys if they have the same type."""
    op = module.ops[index]
    if op.places and k not in op.places:
        return op.block, op.inputs[k]
    at = op.places.index(k) if op.places else k
    return (op.function, op.operands[at]) if at < len(op.operands) else (op.block, op.inputs[k])


def _rows(flow: Flow, index: int) -> int | None:
    """Return how many rows, at most, the scatter at ``index`` writes into a constant array (such as zeros)
    with at least LEAST (262,144) elements. Return None for other scatters."""
    op = flow.module.ops[index]
    sizes: Sequence[int | None] = types.tensor(op.inputs[0]).shape or () if len(op.inputs) == 3 else ()
    if len(sizes) < 2 or None in sizes or flow.constant(flow.operand(ReachedValue(index), 0)) is None:
        return None
    elements, updates = types.tensor(op.inputs[0]).elements or 0, types.tensor(op.inputs[2]).elements or 0
    row = elements // (sizes[0] or 1)
    return updates // row if elements >= LEAST and row and updates else None


def _is_scalar(flow: Flow, index: int, k: int) -> bool:
    """Return whether operand ``k`` of the operation at ``index`` is one number, repeated for all elements."""
    value = flow.operand(ReachedValue(index), k)
    dimensions = range(len(types.tensor(flow.module.ops[index].outputs[0]).shape or ()))
    return value is not None and all(flow.spreads(value, d) for d in dimensions)


def _short(table: types.Tensor) -> str:
    """Write the dtype and shape of a table: ``float32[60000,48]``."""
    return f"{table.dtype}[{','.join(map(str, table.shape or ()))}]"
