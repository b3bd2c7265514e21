"""List the largest values that a lowered program computes and that XLA has to store in memory.

A value is included only if it is the result of an operation that XLA does not fuse into another.
"""

from __future__ import annotations

import msgspec

from jaxscope.analysis.avals import short_dtype, short_shape
from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

MOST = 20
# Results of other operations may exist only inside a fusion.
IN_MEMORY = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "convolution", "custom_call", "dot_general", "fft", "scatter", "sort",
        "triangular_solve", "while",
    )
)  # fmt: skip


class LargeValue(msgspec.Struct, frozen=True):
    """A large value of a lowered program: the result of an operation.

    Attributes:
      bytes: bytes of the whole array, on all devices together.
      shape: the shape with its dtype: ``f32[4096,512]``.
      operation: the name of the operation without its dialect: ``dot_general``.
      source: the line of the user's code; None: unknown.
    """

    bytes: int
    shape: str
    operation: str
    source: Frame | None


def find(module: Module, sources: Sources) -> list[LargeValue]:
    """Return the largest values of a program that XLA has to store in memory, the largest first, at most MOST
    (20). If a line computes several values of the same shape by the same operation, only one is returned."""
    found: set[LargeValue] = set()
    for index, op in enumerate(module.ops):
        if op.name not in IN_MEMORY or not sources.times[op.function]:
            continue
        for output in op.outputs:
            value = types.tensor(output)
            if value.bytes:
                shape = short_dtype(value.dtype) + short_shape([n or 0 for n in value.shape or ()])
                found.add(LargeValue(value.bytes, shape, op.name.partition(".")[2], sources.frame(index)))
    return sorted(found, key=lambda v: (-v.bytes, repr(v)))[:MOST]
