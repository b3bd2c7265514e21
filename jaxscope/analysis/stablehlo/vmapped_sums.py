"""Find arrays that ``vmap`` fills separately for each element, and that the program then adds up:
``jax.vmap(lambda i: jnp.zeros(n).at[i].add(1.0))(indices).sum(0)``. One array to which all elements add needs
neither the memory of all copies nor the time to fill them with zeros and to sum them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import SUMMED

COPIES = "vmapped-sum"
_SUM, _SCATTER, _WHILE = "stablehlo.reduce", "stablehlo.scatter", "stablehlo.while"
_BATCH = re.compile(r"input_batching_dims = \[([\d, ]*)\]")
# An element of the copies takes about as long as this many operations: it is filled with zero, carried and
# summed. Measured with JAX 0.10 on a CPU: 113 million elements take 0.9 s.
ELEMENT = 10
FEWEST = 8  # elements of the vmap


def find(flow: Flow, index: int) -> list[tuple[str, int, int]]:
    """Return [(COPIES, operations, operations with one array)] if the operation at ``index`` sums arrays that
    only a batched scatter-add fills, maybe in a loop, over dimensions of the ``vmap``; else an empty list.
    ``operations`` is how many ordinary operations take about as long as the copies."""
    op = flow.module.ops[index]
    summed = work.sizes(SUMMED, op.detail) if op.name == _SUM and op.inputs else []
    shape = [n or 0 for n in types.tensor(op.inputs[0]).shape or ()] if summed else []
    copies = math.prod(shape[d] for d in summed if d < len(shape))
    filled = flow.operand(ReachedValue(index), 0) if summed else None
    if len(shape) <= len(summed) or copies < FEWEST or filled is None:
        return []
    maker = flow.module.ops[filled.at]
    if maker.name == _WHILE:
        start = op.picks[0] if op.picks else 0
        added = any(
            inside.outputs == (op.inputs[0],) and _within(flow, k, filled.at) and _adds(flow, k, summed)
            for k, inside in enumerate(flow.module.ops)
            if inside.name == _SCATTER
        )
    else:
        start, added = 0, maker.name == _SCATTER and _adds(flow, filled.at, summed)
    if not added or flow.constant(flow.operand(filled, start)) is None:
        return []
    elements = math.prod(shape)
    return [(COPIES, ELEMENT * elements, ELEMENT * elements // copies)]


def _within(flow: Flow, index: int, loop: int) -> bool:
    """Return whether the operation ``index`` is in a region of the operation ``loop``."""
    parent = flow.module.ops[index].parent
    while parent is not None and parent != loop:
        parent = flow.module.ops[parent].parent
    return parent == loop


def _adds(flow: Flow, index: int, summed: Sequence[int]) -> bool:
    """Return whether the scatter at ``index`` adds to its operand, for each element of a ``vmap`` to its own
    copy: the dimensions ``summed`` are batch dimensions."""
    ops = flow.module.ops
    inner = ops[index + 1] if index + 1 < len(ops) else None
    adds = inner is not None and inner.parent == index and inner.name == "stablehlo.add"
    return adds and {*summed} <= {*work.sizes(_BATCH, ops[index].detail)}
