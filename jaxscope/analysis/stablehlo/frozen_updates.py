"""Find parameters to which a training step adds zeros, although it computes their gradients and the moments
of the optimizer for them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis.paths import root
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import CONSTANTS, NOT_OPERATIONS, ZERO, Module, Op
from jaxscope.analysis.stablehlo.values import Value as Array

_SAME = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.negate"})
DEPTH = 20  # through how many operations a value is followed


class FrozenUpdates(msgspec.Struct, frozen=True):
    """Parameters that a program returns unchanged, because it adds zeros to them.

    Attributes:
      paths: the known paths of these parameters among the program's arguments, the largest first.
      bytes: the bytes of these parameters on one device.
      moments: the bytes on one device of the optimizer's state for these parameters: changed results with the
        shape of a parameter and the same end of the path, such as ``.mu['w']`` for ``params['w']``.
    """

    paths: tuple[str, ...]
    bytes: int
    moments: int


def find(module: Module, arguments: Sequence[Array], results: Sequence[Array]) -> FrozenUpdates | None:
    """Return the parameters to which the program adds zeros. Return None if there are none with a known path,
    or if the program computes no state of an optimizer for them.

    Args:
      arguments, results: the arguments and the results of the program, in order.
    """
    main = module.main()
    end = module.ops[main.end - 1] if main is not None and main.end > main.first else None
    if end is None or end.name not in NOT_OPERATIONS or len(end.operands) != len(results):
        return None
    flow = Flow(module)
    frozen: list[Array] = []
    changed: list[Array] = []
    for operand, result in zip(end.operands, results, strict=True):
        made = module.ops[operand] if 0 <= operand < len(module.ops) else None
        added = _added_zeros(flow, operand, made) if made is not None else None
        if added is not None and added < len(arguments):
            frozen.append(arguments[added])
        elif made is not None:
            changed.append(result)
    # The state of Adam for params['w'] is at .mu['w'] and .nu['w'].
    ends = {(a.shape, a.dtype, (a.name or "").removeprefix(root(a.name or ""))) for a in frozen}
    moments = sum(
        r.device_bytes or 0
        for r in changed
        if any((r.shape, r.dtype) == end[:2] and end[2] and (r.name or "").endswith(end[2]) for end in ends)
    )
    named = sorted((a for a in frozen if a.name), key=lambda a: -(a.device_bytes or 0))
    if not named or not moments:
        return None
    size = sum(a.device_bytes or 0 for a in frozen)
    return FrozenUpdates(tuple(a.name or "" for a in named), size, moments)


def _added_zeros(flow: Flow, index: int, op: Op) -> int | None:
    """Return the position of the program's argument to which ``op``, the operation ``index``, adds zeros.
    Return None if ``op`` does something else."""
    if op.name != "stablehlo.add" or len(op.operands) != 2:
        return None
    for argument, k in ((op.operands[0], 1), (op.operands[1], 0)):
        if argument < 0 and _is_zero(flow, flow.operand(ReachedValue(index), k), DEPTH):
            return -1 - argument
    return None


def _is_zero(flow: Flow, value: ReachedValue | None, depth: int) -> bool:
    """Return whether ``value`` is zero everywhere: a constant, possibly repeated, converted or negated, or a
    product with such a value."""
    if value is None or depth == 0:
        return False
    op = flow.module.ops[value.at]
    if op.name in CONSTANTS:
        return ZERO.search(op.detail) is not None
    if op.name == "stablehlo.multiply":
        return any(_is_zero(flow, flow.operand(value, k), depth - 1) for k in (0, 1))
    return op.name in _SAME and _is_zero(flow, flow.operand(value, 0), depth - 1)
