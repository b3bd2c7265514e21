"""Find arrays that a loop fills, one part in each iteration, and of which the program then reads little. XLA
keeps the whole array, even if only every hundredth iteration is read."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.executions import Executions
from jaxscope.analysis.stablehlo.module import CALLS, CONSTANTS, DIMS, NOT_OPERATIONS, SLICE_SIZES, Module, Op
from jaxscope.analysis.stablehlo.sources import LOOPS, Sources
from jaxscope.schema.keys import Frame

READ = 0.25  # the largest share of the elements that counts as little
MOST = 20
MOST_FOLLOWED = 200  # operations
# Operations that read only as many elements of their first operand as their result has.
_PICKS = frozenset({"stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.gather"})
_REDUCE = "stablehlo.reduce"
# Operations whose result has the elements of their operand in another order, shape or dtype
_REORDERS = frozenset({"stablehlo.transpose", "stablehlo.reshape", "stablehlo.convert"})
_SCATTER = "stablehlo.scatter"
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
      reduced: whether a reduction, such as a mean, reads the arrays. It reads all elements, but few numbers
        result. ``share`` is then the share of these numbers.
      results: the numbers of the arrays among the loop's results.
      source: the line of the user's code that calls the scan; None: unknown.
      read_at: a line of the user's code that reads the arrays; None: unknown.
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

    Results of one loop with the same type are one item. Arrays that other operations than slices, gathers and
    reductions read are left out; transposes, reshapes and conversions are allowed before them.
    """
    found = [one for results in by_loop(module, sources).values() for one in results.values()]
    return sorted(found, key=lambda s: -s.bytes)[:MOST]


def by_loop(module: Module, sources: Sources) -> dict[int, dict[str, StackedResult]]:
    """Return a dict: index of a loop in ``module.ops`` -> {MLIR type: the results of the loop with this
    type}, for results of which the program reads little. Loops inside other loops, and loops that may end
    before their results are filled, are left out."""
    inside: dict[int, list[int]] = {i: [] for i, op in enumerate(module.ops) if op.name in LOOPS}
    for index, op in enumerate(module.ops if inside else ()):
        parent = op.parent
        while parent is not None:
            if parent in inside:
                inside[parent].append(index)
            parent = module.ops[parent].parent
    found: dict[int, dict[str, StackedResult]] = {}
    executions, reads = (Executions(module, sources), _Reads(module, sources)) if inside else (None, None)
    for loop in inside:
        op = module.ops[loop]
        if not sources.times[op.function] or sources.in_loop(loop):
            continue
        iterations = executions.iterations(loop) if executions is not None else None
        if not iterations or reads is None:
            continue
        for type in dict.fromkeys(op.outputs):
            first = (types.tensor(type).shape or (0,))[0] or 0
            if first < iterations or first % iterations:  # a scan with unroll=k has 1/k of the iterations
                continue
            one = _of_type(sources, reads, loop, type, inside[loop])
            if one is not None:
                found.setdefault(loop, {})[type] = one
    return found


def _of_type(
    sources: Sources, reads: _Reads, loop: int, type: str, inside: list[int]
) -> StackedResult | None:
    """Return those results with the MLIR type ``type`` of the loop ``module.ops[loop]`` of which the program
    reads little. Return None if there are none, if the loop also reads results of this type, or if they may
    have been filled before the loop. ``inside`` has the operations in the loop's regions."""
    module, tensor = sources.module, types.tensor(type)
    if not tensor.shape or not tensor.elements or not tensor.bytes:
        return None
    outputs = module.ops[loop].outputs
    if sum(_is_filled(module, o, type) for o in module.ops[loop].operands) != outputs.count(type):
        return None  # it may have other contents before the loop
    if not all(reads.only_writes(index, type) for index in inside):
        return None
    found = {k: reads.of(loop, k, tensor) for k, output in enumerate(outputs) if output == type}
    little = {
        k: r for k, r in found.items() if r and sum(each.elements for each in r) <= READ * tensor.elements
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
      elements: the number of elements that the operation reads; for a reduction, that its result has.
      whole: whether it reads only whole iterations.
      reduced: whether it is a reduction.
    """

    at: int
    elements: int
    whole: bool = False
    reduced: bool = False


class _FollowedValue(NamedTuple):
    """A value with all elements of a loop's result.

    Attributes:
      at: the index of the operation that has it as a result; -1 - k: argument k of the function.
      pick: the number of the value among the results of the operation.
      function: the index of the function.
      shape: the shape of the value.
      axis: the dimension with one element for each iteration; None: there is no such dimension.
      origins: the values, numbered like ``at``, from which results of the loop enter this function.
      calls: the calls through which the value came into the function, outermost first, each with the
        ``origins`` of the calling function.
    """

    at: int
    pick: int
    function: int
    shape: tuple[int, ...]
    axis: int | None
    origins: frozenset[int]
    calls: tuple[tuple[int, frozenset[int]], ...] = ()


class _Reads:
    """Finds the operations that read the results of the loops of a module, also in other functions."""

    def __init__(self, module: Module, sources: Sources) -> None:
        self._module, self._sources = module, sources
        self._readers: dict[tuple[int, int], list[int]] = {}  # by function and value, as in ``Op.operands``
        for index, op in enumerate(module.ops):
            for operand in {*op.operands}:
                self._readers.setdefault((op.function, operand), []).append(index)

    def of(self, loop: int, k: int, tensor: types.Tensor) -> list[_Read]:
        """Return what the operations of the program read of result ``k`` of the loop ``module.ops[loop]``.
        ``tensor`` is the type of the result."""
        shape = tuple(n or 0 for n in tensor.shape or ())
        function = self._module.ops[loop].function
        waiting, found = [_FollowedValue(loop, k, function, shape, 0, frozenset({loop}))], list[_Read]()
        while waiting:
            value = waiting.pop()
            for index in self._readers.get((value.function, value.at), ()):
                op = self._module.ops[index]
                picks = op.picks or (0,) * len(op.operands)
                places = op.places or range(len(op.operands))
                for n, operand, pick in zip(places, op.operands, picks, strict=True):
                    if operand != value.at or pick != value.pick:
                        continue
                    passed = self._passed(value, index, n)
                    if passed is not None and len(found) + len(waiting) < MOST_FOLLOWED:
                        waiting.append(passed)
                    else:
                        found.append(self._read(value, index, n, tensor.elements or 0))
        return found

    def only_writes(self, index: int, type: str, depth: int = 0) -> bool:
        """Return whether the operation ``index`` only writes to arrays of the MLIR type ``type``, or has none
        as an operand. It may be a call of a function for which this is true."""
        op = self._module.ops[index]
        if type not in op.inputs or op.name in NOT_OPERATIONS:
            return True
        if is_write(self._module, index):
            return op.outputs == (type,)
        callee = self._module.callee(op)
        if callee is None or depth >= MOST:
            return False
        function = self._module.functions[callee]
        return all(self.only_writes(i, type, depth + 1) for i in range(function.first, function.end))

    def _passed(self, value: _FollowedValue, index: int, n: int) -> _FollowedValue | None:
        """Return the value to follow next if the operation ``index``, whose operand ``n`` is ``value``,
        passes all elements of ``value`` on: a call, a return, a transpose, a reshape or a conversion. Return
        None if the operation reads the value."""
        op = self._module.ops[index]
        if op.name in NOT_OPERATIONS:
            return self._returned(value, op, n)
        callee = self._module.callee(op)
        if callee is not None:
            others = [operand for operand in op.operands if operand != value.at]
            if _depends(self._module, others, value.origins):
                return None
            calls = (*value.calls, (index, value.origins))
            return _FollowedValue(-1 - n, 0, callee, value.shape, value.axis, frozenset({-1 - n}), calls)
        if n or op.name not in _REORDERS or not op.outputs:
            return None
        shape = tuple(d or 0 for d in types.tensor(op.outputs[0]).shape or ())
        axis = _axis_after(op, value, shape)
        return value._replace(at=index, pick=0, shape=shape, axis=axis)

    def _returned(self, value: _FollowedValue, op: Op, n: int) -> _FollowedValue | None:
        """Return the result of the call of a function whose ``return`` is ``op``, if ``value`` is operand
        ``n`` of ``op``. Return None if it is unknown which call this is, or if ``op`` ends a region or the
        program."""
        if op.parent is not None:
            return None
        if value.calls:
            *rest, (call, origins) = value.calls
        elif len(self._sources.called[op.function]) == 1:
            rest, [call], origins = [], self._sources.called[op.function], frozenset()
        else:
            return None
        function = self._module.ops[call].function
        return _FollowedValue(call, n, function, value.shape, value.axis, origins | {call}, tuple(rest))

    def _read(self, value: _FollowedValue, index: int, n: int, every: int) -> _Read:
        """Return what the operation ``index`` reads of its operand ``n``, which is ``value`` with ``every``
        elements."""
        op = self._module.ops[index]
        if n or op.name not in (*_PICKS, _REDUCE) or _depends(self._module, op.operands[1:], value.origins):
            return _Read(index, every)
        elements = types.tensor(op.outputs[0]).elements or every
        if op.name == "stablehlo.gather":
            taken = tuple(work.sizes(SLICE_SIZES, op.detail))
        else:
            taken = tuple(d or 0 for d in types.tensor(op.outputs[0]).shape or ())
        reduced = op.name == _REDUCE
        whole = value.axis is not None and _without(taken, value.axis) == _without(value.shape, value.axis)
        return _Read(index, elements, whole=whole and not reduced, reduced=reduced)


def _without(sizes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return sizes[:axis] + sizes[axis + 1 :]


def _axis_after(op: Op, value: _FollowedValue, shape: tuple[int, ...]) -> int | None:
    """Return the dimension of the result of ``op`` that has one element for each iteration; None: unknown.
    ``op`` transposes, reshapes or converts ``value``; the result has the shape ``shape``."""
    if value.axis is None or op.name == "stablehlo.convert":
        return value.axis
    if op.name == "stablehlo.transpose":
        order = work.sizes(DIMS, op.detail)
        return order.index(value.axis) if value.axis in order else None
    before, size = math.prod(value.shape[: value.axis]), value.shape[value.axis]
    same = (k for k, n in enumerate(shape) if n == size and math.prod(shape[:k]) == before)
    return next(same, None)


def is_write(module: Module, index: int) -> bool:
    """Return whether the operation ``index`` writes into a part of an array without reading it, or calls a
    function of JAX that does so."""
    op = module.ops[index]
    if op.name == _SCATTER:  # its region returns the new value: it adds or multiplies nothing
        inner = module.ops[index + 1] if index + 1 < len(module.ops) else None
        return inner is not None and inner.parent == index and inner.name in NOT_OPERATIONS
    return op.name == _WRITE or (op.name in CALLS and (op.callee or "").startswith(_WRITES))


def _is_filled(module: Module, index: int, type: str) -> bool:
    """Return whether the operation ``index`` is a constant or a broadcast of the MLIR type ``type``, as for
    an array of equal elements."""
    op = module.ops[index] if index >= 0 else None
    return op is not None and op.outputs == (type,) and op.name in ("stablehlo.broadcast_in_dim", *CONSTANTS)


def _depends(module: Module, operands: Sequence[int], origins: Collection[int]) -> bool:
    """Return whether one of ``operands`` depends on one of the values ``origins``, such as an index that is
    computed from all iterations. Both are as in ``Op.operands``. Return True also if more than MOST_FOLLOWED
    (200) operations would have to be followed."""
    waiting, seen = [*operands], set[int]()
    while waiting:
        index = waiting.pop()
        if index in origins or len(seen) > MOST_FOLLOWED:
            return True
        if index >= 0 and index not in seen:
            seen.add(index)
            waiting += module.ops[index].operands
    return False
