"""Count the matrix products and convolutions of a lowered program by operand types, result type and
precision."""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.avals import short_dtype
from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.executions import Executions
from jaxscope.analysis.stablehlo.module import PRODUCTS, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

CONVOLUTION = "stablehlo.convolution"
MAX_LISTED = 500
# StableHLO's Precision attribute; without one it is DEFAULT.
_LEVELS = ("DEFAULT", "HIGH", "HIGHEST", "PACKED_NIBBLE")
_LEVEL = re.compile(r"\b(DEFAULT|HIGHEST|HIGH|PACKED_NIBBLE)\b")
# ``algorithm = <lhs_precision_type = tf32, ..., accumulation_type = f32, ..., num_primitive_operations = 3,
# ...>``
_ALGORITHM = re.compile(r"\balgorithm = <([^>]*+)>")
_PART = re.compile(r"(\w++) = (\w++)")


class Product(msgspec.Struct, frozen=True):
    """The matrix products or convolutions of one line of the user's code that have the same types and
    precision.

    Attributes:
      dtypes: the short dtypes of the two operands and of the result: ``("f32", "f32", "f32")``.
      precision: the higher of the two operands' precisions in StableHLO (``HIGHEST``), or the requested
        algorithm (``tf32_tf32_f32 x3``).
      count: number of products, with called functions inlined and loop bodies counted once.
      source: the line; None: unknown.
      flops: the flops of the whole arrays in one call, on all devices together; None for a convolution, for
        products in ``shard_map``, and if a loop, a branch or an unknown size makes the number unknown.
    """

    dtypes: tuple[str, str, str]
    precision: str
    count: int
    source: Frame | None
    flops: int | None = None

    @property
    def operands(self) -> str:
        """Return the dtypes as text: ``f32 x f32 -> f32``."""
        return "{} x {} -> {}".format(*self.dtypes)


def find(module: Module, sources: Sources) -> list[Product]:
    """Return the matrix products and convolutions of a program, grouped by line of the user's code, types and
    precision, at most MAX_LISTED (500) groups. The most frequent come first."""
    found: dict[tuple[tuple[str, str, str], str, Frame | None], tuple[int, int | None]] = {}
    executions = Executions(module, sources)
    for index, op in enumerate(module.ops):
        times = sources.times[op.function]
        if op.name not in PRODUCTS or not times or len(op.inputs) < 2 or not op.outputs:
            continue
        a, b, out = (short_dtype(types.tensor(t).dtype) for t in (*op.inputs[:2], op.outputs[0]))
        key = ((a, b, out), _precision(op.detail), sources.frame(index))
        count, flops = found.get(key, (0, 0))
        runs, once = executions.of(index), work.operations(op) if op.name != CONVOLUTION else 0
        known = flops is not None and runs is not None and once
        found[key] = (count + times, (flops or 0) + (runs or 0) * once if known else None)
    listed = [Product(*key[:2], n, key[2], flops) for key, (n, flops) in found.items()]
    return sorted(listed, key=lambda p: -p.count)[:MAX_LISTED]


def _precision(detail: str) -> str:
    """Return the precision or the algorithm of a product, as in ``Product.precision``, from the text of the
    operation: ``%, %, precision = [HIGHEST, DEFAULT]`` -> ``HIGHEST``. The default is ``DEFAULT``."""
    named = _ALGORITHM.search(detail)
    if named is not None:
        parts = dict(_PART.findall(named[1]))
        sides = [
            parts.get(f"{side}_type", "?") for side in ("lhs_precision", "rhs_precision", "accumulation")
        ]
        times = parts.get("num_primitive_operations", "1")
        return "_".join(sides) + (f" x{times}" if times != "1" else "")
    return max(_LEVEL.findall(detail.partition("precision")[2]), key=_LEVELS.index, default="DEFAULT")
