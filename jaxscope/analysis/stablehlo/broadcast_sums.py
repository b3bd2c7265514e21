"""Find sums over products, or over squared differences, of arrays that the program first broadcasts against
each other: ``((x[:, None] - y) ** 2).sum(-1)``. A matrix product computes them much faster.

XLA turns a sum over the product of two such arrays into a matrix product, but not a sum over the product of
three, nor over a squared difference (measured with JAX 0.10 and 0.12 on a CPU: the squared distances of two
sets of 1,000 points take 7 to 9 ms, and less than 1 ms with a matrix product; their gradient for 64
dimensions 77 to 112 ms, and 3 to 5 ms).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, SCALES, SUMMED
from jaxscope.analysis.stablehlo.sources import Sources

DISTANCES, OUTER = "distances", "sum-of-outer"
SUM, DOT = "stablehlo.reduce", "stablehlo.dot_general"
ELEMENT = 10  # an element of the broadcast arrays takes about as long as this many operations
DEPTH = 6  # how many operations after a difference are followed
FEWEST = 2  # coordinates of a point: with only one, a matrix product is not faster
POINTS = 8  # the fewest points on either side
FACTORS = 3  # the fewest arrays in a product that XLA does not turn into a matrix product
_BATCH = re.compile(r"batching_dims = \[([\d, ]*)\]")


def find(flow: Flow, sources: Sources, index: int) -> list[tuple[str, int, int]]:
    """Return [(kind, operations, operations of a matrix product instead)] if the operation at ``index`` is a
    sum over products or squared differences of broadcast arrays; else an empty list. The kind is
    ``distances`` for squared differences, ``sum-of-outer`` for products. ``operations`` is how many ordinary
    operations take as long as the sum."""
    op = flow.module.ops[index]
    shape = [n or 0 for n in types.tensor(op.inputs[0]).shape or ()]
    summed = SUMMED.search(op.detail) if op.name == SUM else None
    value, square = flow.operand(ReachedValue(index), 0), None
    if summed is not None:
        kept = [d for d in range(len(shape)) if d not in work.sizes(SUMMED, op.detail)]
        square = value if value is not None and _is_square(flow, value) else None
    elif op.name == DOT:  # jnp.einsum("ijk,ijk->ij", difference, difference)
        kept = work.sizes(_BATCH, op.detail)
        square = ReachedValue(index) if len(op.operands) == 2 and op.operands[0] == op.operands[1] else None
    else:
        return []
    elements = math.prod(shape)
    dtype = types.tensor(op.inputs[0]).dtype or ""
    if (
        "float" not in dtype
        or len(shape) - len(kept) < 1
        or elements < FEWEST * math.prod(shape[d] for d in kept)
    ):
        return []
    if square is not None and _is_of_difference(flow, sources, square, 0, kept):
        return [(DISTANCES, ELEMENT * elements, 2 * elements)]
    if op.name == SUM and value is not None and _is_outer_product(flow, value, kept):
        return [(OUTER, ELEMENT * elements, 2 * elements)]
    return []


def _is_square(flow: Flow, value: ReachedValue) -> bool:
    """Return whether ``value`` is a square, ``x * x`` or ``chlo.square``."""
    op = flow.module.ops[value.at]
    twice = op.name == "stablehlo.multiply" and len(op.inputs) == 2 and op.operands[:1] == op.operands[1:]
    return twice or op.name == "chlo.square"


def _is_of_difference(
    flow: Flow, sources: Sources, reader: ReachedValue, k: int, kept: Sequence[int]
) -> bool:
    """Return whether operand ``k`` of ``reader`` is a difference of arrays that are broadcast along different
    dimensions in ``kept`` (those that the sum keeps), of at least POINTS (8) elements each. The difference
    may be scaled by an array that is equal along ``kept``. Return False if another operation uses the
    difference, unless differentiation created that use."""
    value = flow.operand(reader, k)
    if value is None:
        return False
    module, ops = flow.module, flow.module.ops
    inside = ops[reader.at].function  # the use is the call of this function if the value is from outside
    users = {u for u in flow.users.get(value.at, ()) if u != reader.at and module.callee(ops[u]) != inside}
    if not all(_is_of_gradient(flow, sources, user, kept, DEPTH) for user in users):
        return False
    op = ops[value.at]
    every = range(len(types.tensor(op.outputs[0]).shape or ()))
    sides = [flow.operand(value, side) for side in (0, 1)] if len(op.inputs) == 2 else []
    along = [{d for d in every if side is not None and flow.spreads(side, d)} for side in sides]
    if op.name == "stablehlo.subtract":
        shape = types.tensor(op.outputs[0]).shape or ()
        few = any((shape[d] or 0) < POINTS for spread in along for d in spread)
        points = not few and all(spread and spread <= {*kept} for spread in along)
        return points and not along[0] & along[1]
    scale = next((side for side in (1, 0) if op.name in SCALES and along[side] >= {*kept}), None)
    return scale is not None and _is_of_difference(flow, sources, value, 1 - scale, kept)


def _is_of_gradient(flow: Flow, sources: Sources, user: int, kept: Sequence[int], depth: int) -> bool:
    """Follow the result of the operation ``user`` through at most ``depth`` further operations. Return
    whether differentiation created every operation at which the search ends, as in the gradient of squared
    distances. A sum that differentiation created ends the search, and must be over dimensions in ``kept``
    only."""
    op, backward = flow.module.ops[user], sources.backward(user)
    if op.name == SUM and backward:
        return set(work.sizes(SUMMED, op.detail)) <= set(kept)
    ends = op.name in NOT_OPERATIONS
    further = [u for u, _ in flow.after(user) or ()] if ends else flow.users.get(user, ())
    if depth == 0 or not further:
        return backward is True
    return all(_is_of_gradient(flow, sources, u, kept, depth - 1) for u in further)


def _is_outer_product(flow: Flow, value: ReachedValue, kept: Sequence[int]) -> bool:
    """Return whether ``value`` is the product of at least FACTORS (3) arrays, each broadcast along a
    dimension in ``kept``. Two of them must have no such dimension in common."""
    factors = _factors(flow, value)
    along = [frozenset(d for d in kept if f is not None and flow.spreads(f, d)) for f in factors]
    if len(factors) < FACTORS or not all(along):
        return False
    return any(not a & b for a in along for b in along)


def _factors(flow: Flow, value: ReachedValue | None) -> list[ReachedValue | None]:
    """Return the factors of a product of arrays, without constants; ``[value]`` if ``value`` is not a
    product. None stands for a factor that is an argument of the program or unknown."""
    op = flow.module.ops[value.at] if value is not None else None
    if value is None or op is None or op.name != "stablehlo.multiply":
        return [value] if flow.constant(value) is None else []
    return [factor for k in (0, 1) for factor in _factors(flow, flow.operand(value, k))]
