"""Find arrays that a loop fills, one part in each iteration, and of which the program then reads little. XLA
keeps the whole array, even if only every hundredth iteration is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.executions import Executions
from jaxscope.analysis.stablehlo.module import CALLS, CONSTANTS, NOT_OPERATIONS, Module, Op
from jaxscope.analysis.stablehlo.sources import LOOPS, Sources
from jaxscope.schema.keys import Frame

READ = 0.25  # the largest share of the elements that counts as little
MOST = 20
MOST_FOLLOWED = 200  # operations
# Operations that read only as many elements of their first operand as their result has.
_PICKS = frozenset({"stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.gather"})
_SIZES = re.compile(r"slice_sizes = array<i64: ([\d, ]*)>")  # of a gather
_REDUCE = "stablehlo.reduce"
_WRITE = "stablehlo.dynamic_update_slice"
_WRITES = "dynamic_update"  # how the names of the functions begin that JAX creates for these writes


class StackedResult(msgspec.Struct, frozen=True):
    """Arrays of one type that a loop fills, and of which the program reads little.

    Attributes:
      bytes: the bytes of those parts of the arrays that the program does not read, on all devices together.
      shape: the shape of one array.
      arrays: number of arrays.
      share: the share of the arrays' elements that is read, from 0 to 1.
      whole: whether only whole iterations are read: slices and items along the first axis.
      reduced: whether a reduction reads them, such as a mean, so that all elements are read, but few numbers
        result. ``share`` is then the share of these numbers.
      results: the numbers of the arrays among the loop's results.
      source: the line of the user's code that calls the scan; None: unknown.
      read_at: a line of the user's code that reads them; None: unknown.
    """

    bytes: int
    shape: tuple[int, ...]
    arrays: int
    share: float
    whole: bool
    reduced: bool
    results: tuple[int, ...]
    source: Frame | None
    read_at: Frame | None


def find(module: Module, sources: Sources) -> list[StackedResult]:
    """Return the arrays that loops of the program fill and of which the program reads little, those with the
    most unread bytes first, at most MOST (20). Loops inside other loops are left out.

    Results of one loop with the same type are taken together. Only slices, gathers and reductions may read
    them.
    """
    found = [one for results in by_loop(module, sources).values() for one in results.values()]
    return sorted(found, key=lambda s: -s.bytes)[:MOST]


def by_loop(module: Module, sources: Sources) -> dict[int, dict[str, StackedResult]]:
    """Return a dict: index of a loop in ``module.ops`` -> {MLIR type: the results of the loop with this
    type}, for results of which the program reads little. Loops inside other loops, and loops that may end
    before their results are filled, are left out."""
    inside: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {i: [] for i, op in enumerate(module.ops) if op.name in LOOPS}
    for index, op in enumerate(module.ops if readers else ()):
        parent = op.parent
        while parent is not None:
            if parent in readers:
                inside.setdefault(parent, []).append(index)
            parent = module.ops[parent].parent
        for made in {*op.operands} & readers.keys():
            readers[made].append(index)
    found: dict[int, dict[str, StackedResult]] = {}
    executions = Executions(module, sources) if readers else None
    for loop in readers:
        op = module.ops[loop]
        if not sources.times[op.function] or sources.in_loop(loop):
            continue
        iterations = executions.iterations(loop) if executions is not None else None
        if not iterations:
            continue
        for type in dict.fromkeys(op.outputs):
            first = (types.tensor(type).shape or (0,))[0] or 0
            if first < iterations or first % iterations:  # a scan with unroll=k has 1/k of the iterations
                continue
            one = _of_type(module, sources, loop, type, inside.get(loop, []), readers[loop])
            if one is not None:
                found.setdefault(loop, {})[type] = one
    return found


def _of_type(
    module: Module, sources: Sources, loop: int, type: str, inside: list[int], readers: list[int]
) -> StackedResult | None:
    """Return those results with the MLIR type ``type`` of the loop ``module.ops[loop]`` of which the program
    reads little. Return None if there are none, or if the loop does not only write to results of this type.

    Args:
      inside: indices of the operations in the loop's regions.
      readers: indices of the operations that have a result of the loop as an operand.
    """
    tensor = types.tensor(type)
    if not tensor.shape or not tensor.elements or not tensor.bytes:
        return None
    outputs = module.ops[loop].outputs
    if sum(_is_filled(module, o, type) for o in module.ops[loop].operands) != outputs.count(type):
        return None  # it may have other contents before the loop
    for index in inside:
        op = module.ops[index]
        if (
            type in op.inputs
            and not (is_write(op) and op.outputs == (type,))
            and op.name not in NOT_OPERATIONS
        ):
            return None
    reads: dict[int, list[_Read]] = {k: [] for k, output in enumerate(outputs) if output == type}
    for index in readers:
        op = module.ops[index]
        picks = op.picks or (0,) * len(op.operands)
        for n, (operand, k) in enumerate(zip(op.operands, picks, strict=True)):
            if operand == loop and k in reads:
                reads[k].append(
                    _read(module, loop, index, tensor) if n == 0 else _Read(index, tensor.elements)
                )
    little = {
        k: r for k, r in reads.items() if r and sum(each.elements for each in r) <= READ * tensor.elements
    }
    if not little:
        return None
    every = [each for r in little.values() for each in r]
    share = sum(each.elements for each in every) / (len(little) * tensor.elements)
    shape = tuple(n or 0 for n in tensor.shape)
    return StackedResult(
        bytes=int((1 - share) * len(little) * tensor.bytes),
        shape=shape,
        arrays=len(little),
        share=share,
        whole=all(each.whole for each in every),
        reduced=any(each.reduced for each in every),
        results=tuple(little),
        source=sources.frame(loop),
        read_at=next((line for each in every if (line := sources.frame(each.at)) is not None), None),
    )


class _Read(NamedTuple):
    """What one operation reads of a result of a loop.

    Attributes:
      at: the index of the operation.
      elements: the number of elements that it reads; for a reduction, of those that result.
      whole: whether it reads whole iterations.
      reduced: whether it is a reduction.
    """

    at: int
    elements: int
    whole: bool = False
    reduced: bool = False


def _read(module: Module, loop: int, index: int, tensor: types.Tensor) -> _Read:
    """Return what the operation ``index`` reads of its first operand, a result of the loop
    ``module.ops[loop]`` with the type ``tensor``."""
    op, every = module.ops[index], tensor.elements or 0
    if op.name not in (*_PICKS, _REDUCE) or _depends(module, op.operands[1:], loop):
        return _Read(index, every)
    elements = types.tensor(op.outputs[0]).elements or every
    rest = tuple(n or 0 for n in (tensor.shape or ())[1:])
    if op.name == "stablehlo.gather":
        taken = tuple(work.sizes(_SIZES, op.detail))[1:]
    else:
        taken = tuple(n or 0 for n in (types.tensor(op.outputs[0]).shape or ())[1:])
    reduced = op.name == _REDUCE
    return _Read(index, elements, whole=not reduced and taken == rest, reduced=reduced)


def is_write(op: Op) -> bool:
    """Return whether ``op`` writes into a part of an array, or calls JAX's function that does."""
    return op.name == _WRITE or (op.name in CALLS and (op.callee or "").startswith(_WRITES))


def _is_filled(module: Module, index: int, type: str) -> bool:
    """Return whether the operation ``index`` is a constant or a broadcast of the MLIR type ``type``, as an
    array of equal elements is."""
    op = module.ops[index] if index >= 0 else None
    return op is not None and op.outputs == (type,) and op.name in ("stablehlo.broadcast_in_dim", *CONSTANTS)


def _depends(module: Module, operands: Sequence[int], loop: int) -> bool:
    """Return whether one of ``operands`` depends on a result of the loop ``module.ops[loop]``, such as the
    index of the best iteration. Long computations count as dependent."""
    waiting, seen = [o for o in operands if o >= 0], set[int]()
    while waiting:
        index = waiting.pop()
        if index == loop or len(seen) > MOST_FOLLOWED:
            return True
        if index not in seen:
            seen.add(index)
            waiting += [o for o in module.ops[index].operands if o >= 0]
    return False
