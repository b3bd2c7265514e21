"""Find constant indices that are out of bounds. NumPy raises an IndexError for them, JAX does not: it reads
another element, or leaves the update out."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.flow import BROADCAST, DEPTH, Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import CONSTANTS, INTEGER, SLICE_SIZES, Module, Op
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

SLICE, GATHER, SCATTER = "stablehlo.dynamic_slice", "stablehlo.gather", "stablehlo.scatter"
SAME = frozenset({BROADCAST, "stablehlo.convert", "stablehlo.reshape"})
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "stablehlo.add": operator.add,
    "stablehlo.subtract": operator.sub,
    "stablehlo.multiply": operator.mul,
}
COMPARISONS: dict[str, Callable[[int, int], int]] = {"LT": operator.lt, "GE": operator.ge}
TAKE = re.compile(r"_take(?:_\d+)?$")  # JAX's function behind jnp.take
_SIZES = re.compile(r"sizes = \[([\d, ]*)\]")
_READ_AXES = re.compile(r"start_index_map = \[([\d, ]*)\]")
_CHANGED_AXES = re.compile(r"scatter_dims_to_operand_dims = \[([\d, ]*)\]")
_SINGLE = re.compile(r"inserted_window_dims = \[([\d, ]*)\]")


class OutOfBounds(msgspec.Struct, frozen=True):
    """A constant index that is out of bounds.

    Attributes:
      index: the index as the user wrote it; negative: counted from the end.
      size: number of elements along the indexed axis.
      use: ``"change"`` if the index says what to change (``x.at[index].set``), ``"fill"`` if ``jnp.take``
        reads it, which gives NaN, else ``"read"``, which gives the first or the last element.
      source: the line of the user's code.
    """

    index: int
    size: int
    use: str
    source: Frame


def find(module: Module, sources: Sources) -> Iterator[OutOfBounds]:
    """Yield the first index out of bounds of each line of the user's code, in the order of the text. Indices
    that an installed package passes to JAX, and those that differentiation repeats, are left out."""
    indexing = [i for i, op in enumerate(module.ops) if op.name in (SLICE, GATHER, SCATTER)]
    flow = Flow(module) if indexing else None
    seen = set[Frame]()
    for index in indexing:
        source = sources.own(index).frame or sources.frame(index)
        if flow is None or source is None or source in seen or sources.in_library(index):
            continue
        for at, size, window in _indices(flow, index):
            if -size <= at < 0 or 0 <= at <= size - window or sources.backward(index):
                continue
            seen.add(source)
            yield OutOfBounds(at, size, _use(module, index), source)
            break


def _indices(flow: Flow, index: int) -> Iterator[tuple[int, int, int]]:
    """Yield (index, size of the indexed axis, number of elements along it that are used) for each constant
    index of the operation ``index``. An index below 0 is one that JAX has added the size to."""
    op = flow.module.ops[index]
    shape = types.tensor(op.inputs[0]).shape if op.inputs else None
    if not shape or None in shape:
        return
    sizes = [n or 0 for n in shape]
    if op.name == SLICE:
        windows = work.sizes(_SIZES, op.detail)
        starts = list(enumerate(_value(flow, ReachedValue(index), 1 + k) for k in range(len(sizes))))
    elif op.name == GATHER:
        windows = work.sizes(SLICE_SIZES, op.detail)
        starts = _vector(flow, index, work.sizes(_READ_AXES, op.detail))
    else:
        windows = [1] * len(sizes)
        single = work.sizes(_SINGLE, op.detail)  # along other axes, several elements are changed
        starts = [s for s in _vector(flow, index, work.sizes(_CHANGED_AXES, op.detail)) if s[0] in single]
    for axis, at in starts:
        if at is not None and axis < len(sizes) == len(windows):
            yield (at if at >= 0 else at - sizes[axis]), sizes[axis], windows[axis]


def _use(module: Module, index: int) -> str:
    op = module.ops[index]
    if op.name == SCATTER:
        return "change"
    return "fill" if op.name == GATHER and TAKE.match(module.functions[op.function].name) else "read"


def _vector(flow: Flow, index: int, axes: Sequence[int]) -> list[tuple[int, int | None]]:
    """Return (axis, index) for the indices of the gather or scatter ``index``, which are operand 1. An index
    that is not one known number is None."""
    if len(axes) == 1:
        return [(axes[0], _value(flow, ReachedValue(index), 1))]
    vector = flow.operand(ReachedValue(index), 1)
    op = flow.module.ops[vector.at] if vector is not None else None
    if vector is None or op is None or op.name != "stablehlo.concatenate" or len(op.inputs) != len(axes):
        return []
    return [(axis, _value(flow, vector, k)) for k, axis in enumerate(axes)]


def _value(flow: Flow, value: ReachedValue, k: int, depth: int = 0) -> int | None:
    """Return the integer that all elements of operand ``k`` of the operation ``value.at`` are, or None if it
    is unknown or they differ."""
    found = flow.operand(value, k) if depth < DEPTH else None
    if found is None:
        return None
    op: Op = flow.module.ops[found.at]
    if op.name in CONSTANTS:
        number = INTEGER.search(op.detail)
        return int(number[1]) if number is not None else None
    if op.name in SAME:
        return _value(flow, found, 0, depth + 1)
    compute = ARITHMETIC.get(op.name)
    if op.name == "stablehlo.compare":
        compute = COMPARISONS.get(op.detail.strip()[:2])
    if compute is not None:
        left, right = _value(flow, found, 0, depth + 1), _value(flow, found, 1, depth + 1)
        return int(compute(left, right)) if left is not None and right is not None else None
    if op.name == "stablehlo.select":
        chosen = _value(flow, found, 0, depth + 1)
        return _value(flow, found, 1 if chosen else 2, depth + 1) if chosen is not None else None
    return None
