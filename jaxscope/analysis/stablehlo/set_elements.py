"""Find scatters that set elements of matrices at pairs of indices: ``x.at[jnp.triu_indices(n)].set(c)``. XLA
writes the elements one by one. A mask and ``jnp.where`` do the same for a triangle much faster.

Measured with JAX 0.10 and 0.12 on a CPU: 520,192 elements of 64 matrices of 128 x 128 take 6.4 ms, and 0.13
ms with a mask; together with the gradient of a softmax 19 ms, and 0.8 ms. An element takes 10 to 30 ns; 1 ms
is the time for about 80,000.
"""

from __future__ import annotations

import re

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS

SET = "set-elements"
SCATTER = "stablehlo.scatter"
ELEMENT = 100  # writing an element takes about as long as this many operations
INSTEAD = 2  # operations for each element of the whole array with a mask
_WINDOW = re.compile(r"update_window_dims = \[([\d, ]*)\]")
_SINGLE = re.compile(r"inserted_window_dims = \[([\d, ]*)\]")
_INDEXED = re.compile(r"scatter_dims_to_operand_dims = \[([\d, ]*)\]")


def find(flow: Flow, index: int) -> list[tuple[str, int, int]]:
    """Return [(SET, operations, operations with a mask)] if the operation at ``index`` sets elements of each
    matrix to one number, each at a pair of indices for two neighboring dimensions; else an empty list.
    ``operations`` is how many ordinary operations take about as long."""
    op = flow.module.ops[index]
    indexed = work.sizes(_INDEXED, op.detail) if op.name == SCATTER and len(op.inputs) == 3 else []
    if len(indexed) != 2 or indexed[1] != indexed[0] + 1 or work.sizes(_SINGLE, op.detail) != indexed:
        return []
    whole, updates = (types.tensor(op.inputs[k]) for k in (0, 2))
    window = work.sizes(_WINDOW, op.detail)
    along = max((d for d in range(len(updates.shape or ())) if d not in window), default=None)
    scatters = _scatters(flow, index, along) if along is not None else 0
    if not scatters:
        return []
    return [(SET, scatters * ELEMENT * (updates.elements or 0), INSTEAD * (whole.elements or 0))]


def _scatters(flow: Flow, index: int, along: int) -> int:
    """Return how many scatters the program has to set elements to one number by the scatter at ``index``: 2
    if it differentiates this; 0 if the scatter does something else. The dimension ``along`` of the updates is
    that of the indices."""
    ops = flow.module.ops
    inner, value = ops[index + 1] if index + 1 < len(ops) else None, flow.operand(ReachedValue(index), 2)
    if inner is None or inner.parent != index or value is None:
        return 0
    if inner.name in NOT_OPERATIONS:
        return int(flow.spreads(value, along))
    # If an index occurs twice, the last update counts. For a gradient, JAX finds it by a scatter of numbers,
    # and adds this update, or zero, to a matrix that is zero at the indices.
    if inner.name != "stablehlo.add" or ops[value.at].name != "stablehlo.select":
        return 0
    chosen = [flow.operand(value, k) for k in (1, 2)]
    return 2 * all(one is not None and flow.spreads(one, along) for one in chosen)
