"""Find scans that keep values of all their iterations for the computation of the gradient."""

from __future__ import annotations

from collections import Counter

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

WHILE, BARRIER = "stablehlo.while", "stablehlo.optimization_barrier"
FEWEST_ITERATIONS = 4
FEWEST_ARRAYS = 6  # the fewest arrays that are kept: fewer may be what the loop carries, which is needed
MANY_ITERATIONS = 64  # from here on, what the loop carries is worth computing again, in segments


class Residuals(msgspec.Struct, frozen=True):
    """A loop that keeps intermediate values of all its iterations, because the gradient's loop, which runs
    later, reads them.

    Attributes:
      bytes: bytes of the values that are kept, on all devices together.
      arrays: number of arrays, each with the values of all iterations.
      iterations: number of iterations.
      source: the line of the user's code that calls the scan; None: unknown.
    """

    bytes: int
    arrays: int
    iterations: int
    source: Frame | None


def find(module: Module, sources: Sources) -> list[Residuals]:
    """Return the loops of ``module`` that keep values of all iterations for the backward pass, those with the
    most bytes first. Left out are loops whose body is under ``jax.checkpoint``, loops with fewer than
    FEWEST_ITERATIONS (4) iterations, and loops that keep fewer than FEWEST_ARRAYS (6) arrays and have fewer
    than MANY_ITERATIONS (64) iterations."""
    found = list[Residuals]()
    barriers = {module.functions[op.function].name for op in module.ops if op.name == BARRIER}
    # Under jax.checkpoint the backward loop computes the values again, and its body has a barrier.
    again = set[int]()  # operations with a barrier inside, also in a function that is called there
    for op in module.ops:
        parent = op.parent if op.name == BARRIER or op.callee in barriers else None
        while parent is not None and parent not in again:
            again.add(parent)
            parent = module.ops[parent].parent
    for index, op in enumerate(module.ops):
        if op.name != WHILE or len(op.operands) != len(op.inputs) or sources.backward(index) is not True:
            continue
        if index in again:
            continue
        # The operands that are results of another loop. A stacked one has an entry for each iteration.
        kept: dict[int, list[types.Tensor]] = {}
        for operand, text in zip(op.operands, op.inputs, strict=True):
            if operand >= 0 and module.ops[operand].name == WHILE:
                kept.setdefault(operand, []).append(types.tensor(text))
        for forward, tensors in kept.items():
            first = Counter(t.shape[0] for t in tensors if t.shape and len(t.shape) > 1)
            iterations, _ = first.most_common(1)[0] if first else (None, 0)
            stacked = [t for t in tensors if t.shape and t.shape[0] == iterations and t.bytes is not None]
            if iterations is None or iterations < FEWEST_ITERATIONS:
                continue
            if len(stacked) < FEWEST_ARRAYS and iterations < MANY_ITERATIONS:
                continue
            size = sum(t.bytes or 0 for t in stacked)
            found.append(Residuals(size, len(stacked), iterations, sources.frame(forward)))
    return sorted(found, key=lambda r: -r.bytes)
