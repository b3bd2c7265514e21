"""Find arrays of shape [N, 1] that are combined with arrays of shape [N], and whose [N, N] results are only
added up: ``jnp.mean((prediction - y) ** 2)`` with a prediction of shape [N, 1]."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.constraints import NOT_ELEMENTWISE
from jaxscope.analysis.stablehlo.flow import BROADCAST, DEPTH, SAME_NUMBERS, Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import CONSTANTS, DIMS, NOT_OPERATIONS, SUMMED, Module, Op
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

FEWEST = 8  # elements of the arrays
FOLLOWED = 500  # values that are examined before, and after, a combination
CALLERS = 8  # calls of one function that are examined
REDUCE = "stablehlo.reduce"
_REDUCED = re.compile(r"across dimensions = \[([\d, ]*)\]")
_SPLAT = re.compile(r'dense<[^\["]')  # a constant whose elements are all equal
_MOVES = SAME_NUMBERS | {f"stablehlo.{name}" for name in ("concatenate", "slice", "dynamic_slice", "gather")}


class UnequalRanks(msgspec.Struct, frozen=True):
    """A line that combines an array of shape [size, 1] with one of shape [size].

    Attributes:
      size: number of elements of each of the two arrays.
      source: the line of the user's code.
    """

    size: int
    source: Frame


def find(module: Module, sources: Sources) -> list[UnequalRanks]:
    """Return the lines of the user's code with such combinations, in the order of the text. The arrays have
    at least FEWEST (8) elements. Left out are lines with a combination

    - of an array that the program has itself given the shape [N, 1], by ``x[:, None]`` or ``reshape``,
    - of constants, of equal arrays (``x - x[:, 0]``), and those in installed packages or backward passes,
    - whose [N, N] values are used for anything but sums over both dimensions, or together with other arrays
      of shape [N, N]. A sum over one dimension that differentiation created is no obstacle.
    """
    squares = [index for index, op in enumerate(module.ops) if _square(op) is not None]
    search = _Search(module, sources) if squares else None
    found: dict[Frame, UnequalRanks | None] = {}  # None: a combination on the line is intended
    for index in squares:
        source = sources.own(index).frame or sources.frame(index)
        used = sources.times[module.ops[index].function] and not sources.backward(index)
        if search is None or source is None or not used or sources.in_library(index):
            continue
        is_accident = search.is_accident(index, source)
        if is_accident is not None:
            one = UnequalRanks(_square(module.ops[index]) or 0, source) if is_accident else None
            found[source] = found.setdefault(source, one) and one
    return [one for one in found.values() if one is not None]


def _square(op: Op) -> int | None:
    """Return N if ``op`` combines several arrays of shape [N, N] element by element, N at least FEWEST; else
    None."""
    if len(op.inputs) < 2 or len(op.outputs) != 1 or op.results != 1:
        return None
    shape = types.tensor(op.outputs[0]).shape or ()
    n = shape[0] if len(shape) == 2 and shape[0] == shape[1] else None
    return n if n is not None and n >= FEWEST and _is_elementwise(op, shape) else None


def _is_elementwise(op: Op, shape: Sequence[int | None]) -> bool:
    """Return whether the only result of ``op`` has this shape, and so have all operands that are no numbers,
    and the operation is elementwise."""
    if op.name == BROADCAST or op.name in CONSTANTS or len(op.outputs) != 1 or not op.inputs:
        return False
    shapes = {types.tensor(text).shape for text in (*op.inputs, *op.outputs)} - {()}
    return shapes == {tuple(shape)} and op.name.partition(".")[2] not in NOT_ELEMENTWISE


class _Value(NamedTuple):
    """A value of the module.

    Attributes:
      of: the index of the operation that computes it, or -1 - k for argument k of the function.
      pick: its number among the results of the operation.
      function: index of the function in which it is.
      calls: the indices of the calls through which it was reached, outermost first.
    """

    of: int
    pick: int
    function: int
    calls: tuple[int, ...]


class _Search:
    """Finds out whether combinations of arrays are accidents."""

    def __init__(self, module: Module, sources: Sources) -> None:
        self.ops = module.ops
        self.module = module
        self.sources = sources
        self.flow = Flow(module)

    def is_accident(self, index: int, source: Frame) -> bool | None:
        """Return None unless the operation ``index``, on the line ``source``, combines an array of shape
        [N, 1] with one of shape [N] to which only JAX adds a dimension. Else return whether the program only
        adds up the result, and nothing shows that this is intended."""
        calls = self.sources.called[self.ops[index].function][:CALLERS]
        contexts = [ReachedValue(index, (call,)) for call in calls] or [ReachedValue(index)]
        pairs = [list(self._pairs(value, source)) for value in contexts]
        if not any(pairs):
            return None
        intended = not all(pairs) or any(self._is_intended(pair) for found in pairs for pair in found)
        return not intended and all(map(self._are_repeated, contexts)) and self._is_summed(index)

    def _pairs(self, value: ReachedValue, source: Frame) -> Iterator[tuple[ReachedValue, ReachedValue]]:
        """Yield (column, row) for the operands of ``value``: the operation that broadcasts an array of shape
        [N, 1], and the one that gives an array of shape [N] the shape [1, N], on the line ``source``."""
        n = _square(self.ops[value.at])
        operands = [self._made(value, k) for k in range(len(self.ops[value.at].inputs))]
        wide = [v for v in operands if v is not None and self.ops[v.at].name == BROADCAST]
        for column, other in itertools.permutations(wide, 2):
            row = self._made(other, 0)
            if self._shape(column) != (n, 1) or self._shape(other) != (1, n) or row is None:
                continue
            promoted = self.ops[row.at]
            line = self.sources.own(row.at).frame or self.sources.frame(row.at)
            is_promotion = promoted.name == BROADCAST and work.sizes(DIMS, promoted.detail) == [1]
            if is_promotion and self._shape(row) == (n,) and line == source:
                yield column, row

    def _shape(self, value: ReachedValue) -> tuple[int | None, ...] | None:
        """Return the shape of the first operand of ``value``."""
        return types.tensor(self.ops[value.at].inputs[0]).shape

    def _made(self, value: ReachedValue, k: int) -> ReachedValue | None:
        """Return the operation that computes operand ``k`` of ``value``, also inside a called function that
        has several results; None if it is unknown or an argument of the program."""
        for _ in range(DEPTH):
            made = self.flow.maker(value, k)
            callee = self.module.callee(self.ops[made.at]) if made is not None else None
            if made is None or callee is None:
                return made
            op, function = self.ops[value.at], self.module.functions[callee]
            place = op.places.index(k) if op.places else k
            if op.operands[place] != made.at:  # the operand is an argument, which a caller has computed
                return self.flow.operand(value, k)
            k = op.picks[place] if op.picks else 0
            value = ReachedValue(function.end - 1, (*made.calls, made.at))
        return None

    def _is_intended(self, pair: tuple[ReachedValue, ReachedValue]) -> bool:
        """Return whether the program has itself made the array of shape [N, 1] of the pair from one with one
        dimension or from the indices, whether both arrays have the same numbers, or are constants."""
        column, row = pair
        if self._root(column) == self._root(row):
            return True
        if all(self.flow.constant(self.flow.operand(value, 0)) is not None for value in pair):
            return True
        waiting, seen = [(column, 0)], set[tuple[ReachedValue, int]]()
        while waiting and len(seen) <= FOLLOWED:
            at = waiting.pop()
            made = self._made(*at)
            if at in seen or made is None:
                continue
            seen.add(at)
            op = self.ops[made.at]
            shapes = [types.tensor(text).shape or () for text in op.inputs]
            if op.name == "stablehlo.iota" or (op.name in _MOVES and _is_vector(shapes)):
                return True
            if op.name in _MOVES or _is_elementwise(op, types.tensor(op.outputs[0]).shape or ()):
                waiting += [(made, k) for k in range(len(shapes))]
        return bool(waiting)

    def _root(self, value: ReachedValue) -> tuple[int, int]:
        """Return numbers that name the array from which ``value`` has its numbers, before all operations that
        only move or convert them."""
        made = self._made(value, 0)
        for _ in range(FOLLOWED):
            if made is None or self.ops[made.at].name not in SAME_NUMBERS:
                break
            value, made = made, self._made(made, 0)
        if made is not None:
            return made.at, 0
        op = self.ops[value.at]
        return (op.function, op.operands[0]) if op.operands else (value.at, 1)

    def _are_repeated(self, value: ReachedValue) -> bool:
        """Return whether all operands of ``value`` that have the shape of its result are repeated numbers,
        repeated rows or columns, or computed from such arrays element by element."""
        waiting, seen = [value], set[ReachedValue]()
        while waiting:
            at = waiting.pop()
            seen.add(at)
            shape = types.tensor(self.ops[at.at].outputs[0]).shape or ()
            for k, text in enumerate(self.ops[at.at].inputs):
                made = self._made(at, k) if types.tensor(text).shape == shape else at
                op = self.ops[made.at] if made is not None else None
                if made is None or op is None or len(seen) > FOLLOWED:
                    return False
                if made in seen or (op.name in CONSTANTS and _SPLAT.search(op.detail)):
                    continue
                if op.name == BROADCAST:
                    if len(self._shape(made) or ()) not in (0, len(shape)):
                        return False
                elif _is_elementwise(op, shape):
                    waiting.append(made)
                else:
                    return False
        return True

    def _is_summed(self, index: int) -> bool:
        """Return whether the program only adds up the result of the operation ``index``: each use of the
        result, and of what elementwise operations make from it, is a sum over both dimensions, or one that
        differentiation created. Other reductions over both dimensions are no obstacle."""
        op = self.ops[index]
        shape, summed = types.tensor(op.outputs[0]).shape or (), False
        waiting, seen = [_Value(index, 0, op.function, ())], set[_Value]()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            for user in self._users(value):
                if self.ops[user].name == REDUCE:
                    if not self._is_total(user):
                        return False
                    summed = summed or SUMMED.search(self.ops[user].detail) is not None
                    continue
                further = self._further(user, value, shape)
                if further is None or len(seen) > FOLLOWED:
                    return False
                waiting += further
        return summed

    def _users(self, value: _Value) -> list[int]:
        """Return the indices of the operations that read ``value``, each once."""
        function = self.module.functions[value.function]
        users = self.flow.users.get(value.of, ()) if value.of >= 0 else range(function.first, function.end)
        return [user for user in dict.fromkeys(users) if self._places(user, value)]

    def _places(self, user: int, value: _Value) -> list[int]:
        """Return the numbers of the operands of the operation ``user`` that are ``value``."""
        op = self.ops[user]
        found = [
            k
            for k, of in enumerate(op.operands)
            if of == value.of and (not op.picks or of < 0 or op.picks[k] == value.pick)
        ]
        return [op.places[k] for k in found] if op.places else found

    def _is_total(self, index: int) -> bool:
        """Return whether the reduction ``index`` is over both dimensions, or is a sum that differentiation
        created."""
        detail = self.ops[index].detail
        if SUMMED.search(detail) is not None and self.sources.backward(index):
            return True
        return work.sizes(_REDUCED, detail) == [0, 1]

    def _further(self, user: int, value: _Value, shape: Sequence[int | None]) -> list[_Value] | None:
        """Return the values as which ``value`` goes on at the operation ``user``, which reads it: the result
        of an elementwise operation, the argument of a called function, the result of a call. Return None if
        the operation does something else, or combines it with an array that is not repeated."""
        op, callee = self.ops[user], self.module.callee(self.ops[user])
        if op.name in NOT_OPERATIONS:
            after = [(value.calls[-1], value.calls[:-1])] if value.calls else []
            after = after or [(call, ()) for call in self.sources.called[value.function]]
            if op.parent is not None or not after:
                return None
            places = self._places(user, value)
            return [_Value(call, k, self.ops[call].function, calls) for call, calls in after for k in places]
        if callee is not None:
            inside = (*value.calls, user)
            return [_Value(-1 - k, 0, callee, inside) for k in self._places(user, value)]
        if not _is_elementwise(op, shape) or not self._are_repeated(ReachedValue(user, value.calls)):
            return None
        return [_Value(user, 0, value.function, value.calls)]


def _is_vector(shapes: Sequence[tuple[int | None, ...]]) -> bool:
    """Return whether an array of one dimension, with several elements, is among arrays of these shapes."""
    return any(len(shape) == 1 and shape[0] != 1 for shape in shapes)
