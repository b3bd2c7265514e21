"""Find the shardings that a program requests by ``with_sharding_constraint`` and ``reshard``, and the
requests that split a dimension into unequal parts.

Such a request is an operation on a value. If the value is an argument of the program, the request belongs to
the argument. If the program returns the output of the request unchanged, the request belongs to the result.
Values are followed through calls of the private functions that JAX creates for jitted functions called inside
others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import msgspec

from jaxscope.analysis.stablehlo import types, values
from jaxscope.analysis.stablehlo.flow import users
from jaxscope.analysis.stablehlo.module import CALLS, Function, Module, Op
from jaxscope.analysis.stablehlo.shardings import Mesh, Spec, kind_of, stated
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame, table_entry

MAX_DEPTH = 100  # the most nested calls that are followed
MAX_VISITS = 10_000  # the most calls through which arguments are followed
MAX_UNEVEN = 200
MAX_LISTED = 500
MAX_MAKERS = 40  # the most operations that are examined before one constraint
MAX_INSIDE = 200  # the most operations of a called function that are examined
# Operations that are not elementwise although an operand may have the shape of the result.
NOT_ELEMENTWISE = frozenset(
    {
        *("dot_general", "dot", "convolution", "sort", "gather", "scatter", "fft", "cholesky", "reverse"),
        *("triangular_solve", "transpose", "while", "case", "if", "reduce_window", "select_and_scatter"),
        *("custom_call", "dynamic_update_slice", "manual_computation", "all_gather", "all_to_all"),
        *("all_reduce", "collective_permute", "composite"),
    }
)
REQUESTS = ("constraint", "reshard")

Request = tuple[Spec, Frame | None]


class Uneven(msgspec.Struct, frozen=True):
    """A sharding constraint that splits a dimension into parts of unequal size, so that XLA pads it.

    Attributes:
      asked: the sharding that the constraint requests.
      shape, dtype, bytes: those of the global value; None: unknown.
      dimension: the first dimension that is split unevenly, counted from 0.
      parts: the number of parts of this dimension.
      of: ``argument`` or ``result`` of the program; None if the value is computed and used inside the
        program.
      count: number of such constraints at this line, with called functions inlined.
      source: the line of the user's code; None: unknown.
    """

    asked: Spec
    shape: tuple[int, ...]
    dtype: str | None
    bytes: int | None
    dimension: int
    parts: int
    of: str | None
    count: int
    source: Frame | None

    @property
    def padded(self) -> int:
        """The size of the split dimension with its padding."""
        return -(-self.shape[self.dimension] // self.parts) * self.parts


class Constraint(msgspec.Struct, frozen=True):
    """A sharding constraint in the program, with the lines that compute and use its value.

    Attributes:
      asked: the sharding that the constraint requests.
      bytes: bytes of the global value.
      parts: number of requested parts per dimension.
      source: the line of the constraint in the user's code.
      made_at: (file, line) of the operation that computes the value, and of elementwise operations between
        that operation and the constraint, the nearest first.
      used_at: (file, line) of the operations that read the constrained value.
      argument: the name of the program's argument that is constrained; None: the value is computed, or it is
        unknown.
      backward: whether differentiation created the constraint; None: unknown.
    """

    asked: Spec
    bytes: int
    parts: tuple[int, ...]
    source: Frame
    made_at: tuple[tuple[str, int], ...]
    used_at: tuple[tuple[str, int], ...] = ()
    argument: str | None = None
    backward: bool | None = None


class Constraints:
    """The sharding constraints of one module.

    Attributes:
      arguments: position of an argument of the program -> (requested sharding, line of the user's code or
        None). Arguments with several different requests are left out.
      results: position of a result of the program -> (requested sharding, line of the user's code or None).
      also_without: positions of the program's arguments that an operation other than a sharding constraint
        reads.
    """

    def __init__(self, module: Module, sources: Sources, meshes: Mapping[str, Mesh]) -> None:
        self._module, self._sources, self._meshes = module, sources, meshes
        self._of: dict[int, str] = {}  # index of a constraint -> "argument" or "result"
        main = module.main()
        self.arguments: dict[int, Request] = {}
        self.results: dict[int, Request] = {}
        self.also_without: set[int] = set()
        if main is not None:
            self._read_arguments(main)
            self._read_results(main)

    def _request(self, index: int) -> Request | None:
        """Return (requested sharding, line or None) of the constraint ``module.ops[index]``; None if the
        sharding cannot be read."""
        spec = stated(self._module.ops[index], self._meshes)
        return None if spec is None else (spec, self._sources.frame(index))

    def _read_arguments(self, main: Function) -> None:
        """Fill ``self.also_without`` and ``self.arguments``: find the sharding constraints on the program's
        arguments. An argument with several different constraints is left out of ``self.arguments``."""
        found: dict[int, list[int]] = {}
        waiting: list[tuple[Function, tuple[int | None, ...]]] = [(main, tuple(range(len(main.arguments))))]
        seen: set[tuple[str, tuple[int | None, ...]]] = set()
        while waiting and len(seen) < MAX_VISITS:
            function, arguments = waiting.pop()
            if (function.name, arguments) in seen:
                continue
            seen.add((function.name, arguments))
            for index in range(function.first, function.end):
                op = self._module.ops[index]
                taken = [table_entry(arguments, -1 - k) for k in op.operands]
                called = self._module.callee(op)
                if op.parent is None and _is_request(op) and len(taken) == 1 and taken[0] is not None:
                    found.setdefault(taken[0], []).append(index)
                elif (
                    op.parent is None
                    and called is not None
                    and len(taken) == len(self._module.functions[called].arguments)
                ):
                    if any(t is not None for t in taken):
                        waiting.append((self._module.functions[called], tuple(taken)))
                else:
                    self.also_without.update(t for t in taken if t is not None)
        for argument, indices in found.items():
            requests = [self._request(i) for i in indices]
            self._of.update(dict.fromkeys(indices, "argument"))
            first = requests[0]
            if first is not None and all(r is not None and r[0] == first[0] for r in requests):
                self.arguments[argument] = first

    def _read_results(self, main: Function) -> None:
        """Fill ``self.results``: find the sharding constraints whose outputs the program returns."""
        for position in range(len(main.results)):
            index = self._made_by(main, position)
            if index is not None:
                self._of[index] = "result"
                request = self._request(index)
                if request is not None:
                    self.results[position] = request

    def _made_by(self, function: Function, position: int) -> int | None:
        """Return the index of the sharding constraint whose output is result number ``position`` of
        ``function``. Return None if no constraint computes this result."""
        for _ in range(MAX_DEPTH):
            end = self._module.ops[function.end - 1] if function.end > function.first else None
            if end is None or end.name != "func.return" or position >= len(end.operands):
                return None
            made, pick = end.operands[position], end.picks[position] if end.picks else 0
            if not 0 <= made < len(self._module.ops):
                return None  # an argument is returned
            op = self._module.ops[made]
            if _is_request(op):
                return made
            called = self._module.callee(op)
            if called is None:
                return None
            function, position = self._module.functions[called], pick
        return None

    def listed(self) -> list[Constraint]:
        """Return the sharding constraints whose line, size and numbers of parts are known, in the order of
        the text; at most MAX_LISTED (500)."""
        found = []
        requests = [index for index, op in enumerate(self._module.ops) if _is_request(op)]
        readers = users(self._module) if requests else {}
        for index in requests:
            op = self._module.ops[index]
            source = self._sources.frame(index) if self._sources.times[op.function] else None
            t = types.tensor((op.outputs or op.inputs or ("",))[0])
            spec = stated(op, self._meshes) if source is not None else None
            cut = values.parts(spec, len(t.shape)) if spec is not None and t.shape is not None else None
            if spec is None or cut is None or source is None or t.bytes is None:
                continue
            made_at, argument = self._makers(op, t.shape)
            frames = (
                f for reader in readers.get(index, [])[:MAX_MAKERS] for f in self._sources.frames(reader)
            )
            found.append(
                Constraint(
                    asked=spec,
                    bytes=t.bytes,
                    parts=tuple(cut),
                    source=source,
                    made_at=made_at,
                    used_at=tuple(dict.fromkeys((f.file, f.line) for f in frames)),
                    argument=argument,
                    backward=self._sources.backward(index),
                )
            )
            if len(found) == MAX_LISTED:
                break
        return found

    def _makers(
        self, constraint: Op, shape: tuple[int | None, ...] | None
    ) -> tuple[tuple[tuple[str, int], ...], str | None]:
        """Find where the operand of a sharding constraint, on a value of ``shape``, comes from. Return
        (lines, argument).

        ``lines`` has (file, line) of the operation that computes the operand and of elementwise operations
        between that operation and the constraint, the nearest first. ``argument`` is the name of the
        program's argument if the operand is an argument; else None.
        """
        module, function = self._module, self._module.functions[constraint.function]
        lines: dict[tuple[str, int], None] = {}
        waiting, seen, argument = list(constraint.operands), set[int](), None
        while waiting and len(seen) < MAX_MAKERS:
            index = waiting.pop(0)
            if index in seen:
                continue
            seen.add(index)
            if not -len(function.arguments) <= index < len(module.ops):
                continue
            if index < 0:
                known = function is module.main()
                argument = function.arguments[-1 - index].name if known else argument
                continue
            op = module.ops[index]
            lines.update(dict.fromkeys((f.file, f.line) for f in self._sources.frames(index)))
            if self._element_by_element(op):
                waiting += [k for k in op.operands if self._shape(k, function) == shape]
        return tuple(lines), argument if len(seen) == 1 else None

    def _element_by_element(self, op: Op) -> bool:
        """Return whether ``op`` is an elementwise operation, or a call of a function with elementwise
        operations only."""
        called = self._module.callee(op)
        inside: Iterable[Op] = (op,)
        if called is not None:
            function = self._module.functions[called]
            inside = self._module.ops[function.first : function.end][:MAX_INSIDE]
        return all(
            not _is_request(o) and o.name not in CALLS and o.name.partition(".")[2] not in NOT_ELEMENTWISE
            for o in inside
        )

    def _shape(self, index: int, function: Function) -> tuple[int | None, ...] | None:
        """Return the shape of the value ``index`` (as in ``Op.operands``) in ``function``, or None if it is
        unknown."""
        if not -len(function.arguments) <= index < len(self._module.ops):
            return None
        if index < 0:
            text = function.arguments[-1 - index].type
        else:
            op = self._module.ops[index]
            text = (op.outputs or op.inputs or ("",))[0]
        return types.tensor(text).shape

    def uneven(self) -> list[Uneven]:
        """Return the sharding constraints that split a dimension into unequal parts, those on the largest
        values first; at most MAX_UNEVEN (200). Equal constraints of one line are counted together."""
        found: dict[tuple[object, ...], Uneven] = {}
        for index, op in enumerate(self._module.ops):
            times = self._sources.times[op.function]
            if not _is_request(op) or not times or not (op.outputs or op.inputs):
                continue
            t = types.tensor((op.outputs or op.inputs)[0])
            spec = stated(op, self._meshes)
            cut = None if spec is None or t.shape is None else values.parts(spec, len(t.shape))
            if spec is None or cut is None or t.shape is None:
                continue
            shape = [d for d in t.shape if d is not None]
            at = (
                next((k for k, d in enumerate(shape) if d % cut[k]), None) if len(shape) == len(cut) else None
            )
            if at is None:
                continue
            one = Uneven(
                spec,
                tuple(shape),
                t.dtype,
                t.bytes,
                at,
                cut[at],
                self._of.get(index),
                times,
                self._sources.frame(index),
            )
            key = (spec.text, one.shape, one.dtype, one.of, one.source)
            known = found.get(key)
            found[key] = one if known is None else msgspec.structs.replace(known, count=known.count + times)
        return sorted(found.values(), key=lambda u: -(u.bytes or 0))[:MAX_UNEVEN]


def _is_request(op: Op) -> bool:
    """Return whether ``op`` is a sharding constraint or a reshard."""
    return kind_of(op) in REQUESTS


def attach(
    program_values: Iterable[values.Value],
    requests: Mapping[int, Request],
    also_without: Container[int] = (),
) -> tuple[values.Value, ...]:
    """Return the values with the shardings that constraints in the program request for them: the fields
    ``asked``, ``asked_at`` and ``also_without`` are filled. A value without such a request is returned
    unchanged.

    Args:
      program_values: the arguments or the results of the program.
      requests: position of a value -> (requested sharding, line of the user's code or None).
      also_without: positions of values that the program also uses without the constraint.
    """
    return tuple(
        v
        if v.index not in requests
        else msgspec.structs.replace(
            v,
            asked=requests[v.index][0],
            asked_at=requests[v.index][1],
            also_without=v.index in also_without,
        )
        for v in program_values
    )
