"""Find the all-gathers of weights: the communication of fully sharded parameters (FSDP).

The operand of such a gather is an argument of the program, perhaps converted, with another layout, or a slice
of a stack of them in a loop; the result is an operand of a matrix product whose other operand is split over
the gathered axes, like a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jaxscope.analysis.hlo import shardings
from jaxscope.analysis.hlo.attribution import op_name
from jaxscope.analysis.hlo.axes import Mesh
from jaxscope.analysis.hlo.calls import CallGraph, names
from jaxscope.analysis.hlo.lexing import attribute, number, operand_text, operands, unquote
from jaxscope.analysis.hlo.module import Computation, Instruction
from jaxscope.schema.collectives import KINDS

# What hands on one array as it is: another type, layout or shape, a slice of a stack, the other half of a
# pair.
_HANDS_ON = frozenset(
    {
        *(
            "bitcast",
            "bitcast-convert",
            "convert",
            "copy",
            "copy-done",
            "reshape",
            "transpose",
            "dynamic-slice",
        ),
        *("slice", "optimization-barrier", "all-gather-done", "async-update", "async-done"),
        *(f"{opcode}-done" for opcode in ("fusion", "call", "slice", "dynamic-slice")),
    }
)
_CALLS = frozenset({"fusion", "call", "async"})
_PRODUCTS = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})
# In the targets of custom calls that multiply matrices: __cublas$gemm, __onednn$matmul, __cudnn$conv...
_MULTIPLIES = ("gemm", "matmul", "cudnn$conv", "dot")
# What is gathered, summed or sent around is no longer split as its operand is.
_COMBINES = tuple(kind for kind in KINDS if kind not in ("send", "recv"))
_LEAVES_PARTS = ("all-to-all", "reduce-scatter", "ragged-all-to-all")
MAX_STEPS = 4_000  # instructions looked at for one gather

Place = tuple[Computation, Instruction]


class Gathered(NamedTuple):
    """An argument that is gathered for a matrix product.

    Attributes:
      argument: its name.
      beside: numbers of the program's inputs that the product's other operand is computed from.
      shown: whether the text shows that operand to be split over the gathered axes. JAX 0.12 does not print
        the sharding of inputs.
    """

    argument: str
    beside: list[int]
    shown: bool


class Weights:
    """Find the gathered weights of one module. ``mesh``: the axes in which shardings are expressed."""

    def __init__(
        self, graph: CallGraph, mesh: Mesh | None, axes_of: Callable[[Instruction], Sequence[str] | None]
    ) -> None:
        self._graph = graph
        self._mesh = mesh
        self._axes_of = axes_of  # of a collective; None: not known
        self._axes: dict[str, frozenset[str]] = {}

    def of(self, where: Computation, gather: Instruction, axes: Sequence[str] | None) -> Gathered | None:
        """Return the argument that ``gather`` completes for a matrix product; None for another gather."""
        wanted = {axis.partition(":")[0] for axis in axes or ()}
        inputs = operands(gather.tail)
        source = self._source(where, inputs[0]) if wanted and inputs else None
        if source is None:
            return None
        beside: set[int] = set()
        shown = product = False
        for other, name in self._multiplied_with(where, gather):
            product = True
            for one in self._made_of(other, name, wanted):
                if one.opcode != "parameter":
                    shown |= one.opcode.startswith(_LEAVES_PARTS)
                elif one.name != source.name:
                    shown |= bool(self._split(one) & wanted)
                    at = number(operand_text(one.tail))
                    beside.update(() if at is None else (at,))
        if not product:
            return None
        return Gathered(op_name(source) or source.name, sorted(beside), shown)

    def _split(self, parameter: Instruction) -> frozenset[str]:
        """Return the axes that an input of the program is split over."""
        if parameter.name not in self._axes:
            text = attribute(parameter.tail, "sharding")
            spelled = shardings.read(text, self._mesh) if text else None
            found = spelled.dimensions if spelled is not None else None
            self._axes[parameter.name] = frozenset(
                axis.partition(":")[0] for dimension in found or () for axis in dimension
            )
        return self._axes[parameter.name]

    def _source(self, where: Computation, name: str) -> Instruction | None:
        """Return the input of the program that ``name`` is, passed on unchanged; None for another value."""
        for _ in range(MAX_STEPS):
            instruction = where.find(name)
            if instruction is None:
                return None
            if instruction.opcode == "parameter":
                if where.entry:
                    return instruction
                outside = self._passed(where, instruction)
                if outside is None:
                    return None
                where, name = outside
            elif instruction.opcode == "get-tuple-element":
                element = self._element(where, instruction)
                if element is None:
                    return None
                where, name = element
            elif instruction.operation in _CALLS:
                body = self._body(where, instruction)
                if body is None or body.root is None or not _only_hands_on(body):
                    return None
                where, name = body, body.root.name
            elif instruction.operation in _HANDS_ON:
                inputs = operands(instruction.tail)
                if not inputs:
                    return None
                name = inputs[0]
            else:
                return None
        return None

    def _body(self, where: Computation, instruction: Instruction) -> Computation | None:
        found = self._graph.of(where, instruction)
        return found[0].callee if found else None

    def _passed(self, body: Computation, parameter: Instruction) -> tuple[Computation, str] | None:
        """Return the operand that one caller passes as ``parameter`` of ``body``."""
        at = number(operand_text(parameter.tail))
        calls = [c for c in self._graph.callers.get(body.name, ()) if c.instruction.operation in _CALLS]
        if at is None or len(calls) != 1:
            return None
        inputs = operands(calls[0].instruction.tail)
        return (calls[0].caller, inputs[at]) if at < len(inputs) else None

    def _element(self, where: Computation, instruction: Instruction) -> tuple[Computation, str] | None:
        """Return the member of a get-tuple-element: of a tuple created here, or of a loop's if the loop keeps
        it."""
        at, inputs = number(attribute(instruction.tail, "index")), operands(instruction.tail)
        carried = where.find(inputs[0]) if inputs else None
        if at is None or carried is None:
            return None
        if carried.opcode == "tuple":
            return _operand(where, carried, at)
        if carried.opcode == "parameter":  # of a loop's body: as it came in, where every turn hands it on
            root = where.root
            again = _operand(where, root, at) if root is not None and root.opcode == "tuple" else None
            same = where.find(again[1]) if again is not None else None
            if same is None or same.opcode != "get-tuple-element" or attribute(same.tail, "index") != str(at):
                return None
            loops = [c for c in self._graph.callers.get(where.name, ()) if c.instruction.opcode == "while"]
            return self._into_loop(loops[0].caller, loops[0].instruction, at) if len(loops) == 1 else None
        if carried.opcode == "while":
            return self._into_loop(where, carried, at)
        return None

    def _into_loop(self, where: Computation, loop: Instruction, at: int) -> tuple[Computation, str] | None:
        inputs = operands(loop.tail)
        start = where.find(inputs[0]) if inputs else None
        return _operand(where, start, at) if start is not None and start.opcode == "tuple" else None

    def _multiplied_with(self, where: Computation, gather: Instruction) -> Iterator[tuple[Computation, str]]:
        """Yield the other operands of the products that use the result of ``gather``, passed on unchanged."""
        waiting: list[Place] = [(where, gather)]
        seen = {(where.name, gather.name)}
        while waiting and len(seen) < MAX_STEPS:
            place, one = waiting.pop()
            nexts: list[Place] = []
            for reader in place.readers(one.name):
                inputs = operands(reader.tail)
                if reader.opcode in _PRODUCTS or _multiplies(reader):
                    yield from ((place, name) for name in inputs if name != one.name)
                elif reader.operation in _CALLS:
                    body = self._body(place, reader)
                    taken = {n for n, name in enumerate(inputs) if name == one.name}
                    nexts += [
                        (body, p)
                        for p in (body.parameters() if body is not None else ())
                        if body is not None and number(operand_text(p.tail)) in taken
                    ]
                elif reader.opcode == "tuple" and reader.root:
                    places = {str(n) for n, name in enumerate(inputs) if name == one.name}
                    nexts += [
                        (c.caller, element)
                        for c in self._graph.callers.get(place.name, ())
                        if c.instruction.operation in _CALLS
                        for element in c.caller.readers(c.instruction.name)
                        if attribute(element.tail, "index") in places or element.operation in _CALLS
                    ]
                elif reader.operation in _HANDS_ON or reader.opcode == "get-tuple-element":
                    nexts.append((place, reader))
            if one.root:  # of a fusion that does nothing but hand it on, or ends in the gather
                nexts += [
                    (c.caller, c.instruction)
                    for c in self._graph.callers.get(place.name, ())
                    if c.instruction.operation in _CALLS
                ]
            for where_next, next_one in nexts:
                key = (where_next.name, next_one.name)
                if key not in seen:
                    seen.add(key)
                    waiting.append((where_next, next_one))

    def _made_of(self, where: Computation, name: str, axes: set[str]) -> Iterator[Instruction]:
        """Yield the inputs of the program that ``name`` is computed from.

        A collective along ``axes`` is yielded itself; its operands are not followed.
        """
        waiting, seen = [(where, name)], {(where.name, name)}
        while waiting and len(seen) < MAX_STEPS:
            place, current = waiting.pop()
            instruction = place.find(current)
            if instruction is None:
                continue
            if instruction.opcode.startswith(_COMBINES) and self._along(instruction, axes):
                yield instruction
                continue
            nexts: list[tuple[Computation, str] | None] = []
            if instruction.opcode == "parameter":
                if place.entry:
                    yield instruction
                    continue
                nexts.append(self._passed(place, instruction))
            elif instruction.opcode == "get-tuple-element":
                nexts += self._elements(place, instruction)
            else:
                nexts += [(place, n) for n in operands(instruction.tail)]
            for one in nexts:
                if one is not None and (one[0].name, one[1]) not in seen:
                    seen.add((one[0].name, one[1]))
                    waiting.append(one)

    def _along(self, collective: Instruction, axes: set[str]) -> bool:
        if collective.opcode.endswith("-done"):
            return False  # counted at its start
        own = self._axes_of(collective)
        return own is None or not axes.isdisjoint(axis.partition(":")[0] for axis in own)

    def _elements(self, where: Computation, instruction: Instruction) -> list[tuple[Computation, str] | None]:
        """Return the sources of a tuple's element: of a loop's, its initial value and that of each
        iteration."""
        at, inputs = number(attribute(instruction.tail, "index")), operands(instruction.tail)
        carried = where.find(inputs[0]) if inputs else None
        if at is None or carried is None:
            return []
        if carried.opcode == "tuple":
            return [_operand(where, carried, at)]
        if carried.opcode == "parameter" and not where.entry:
            loops = [c for c in self._graph.callers.get(where.name, ()) if c.instruction.opcode == "while"]
            before = [self._into_loop(c.caller, c.instruction, at) for c in loops]
            return [*before, _of_root(where, at)]
        if carried.opcode == "while":
            bodies = names(attribute(carried.tail, "body"))
            body = self._graph.module.computations.get(bodies[0]) if bodies else None
            after = [_of_root(body, at)] if body is not None else []
            return [self._into_loop(where, carried, at), *after]
        return [(where, name) for name in inputs]


def _operand(where: Computation, instruction: Instruction, at: int) -> tuple[Computation, str] | None:
    inputs = operands(instruction.tail)
    return (where, inputs[at]) if 0 <= at < len(inputs) else None


def _of_root(body: Computation, at: int) -> tuple[Computation, str] | None:
    root = body.root
    return _operand(body, root, at) if root is not None and root.opcode == "tuple" else None


def _only_hands_on(body: Computation) -> bool:
    """Return whether a fusion only passes an array on: slice indices are computed from scalars."""
    return all(
        i.operation in _HANDS_ON
        or i.opcode in ("parameter", "constant")
        or i.shape.partition("[")[2].startswith("]")  # a scalar: an index
        for i in body.instructions
    )


def _multiplies(instruction: Instruction) -> bool:
    if instruction.opcode != "custom-call":
        return False
    target = unquote(attribute(instruction.tail, "custom_call_target") or "").casefold()
    return any(word in target for word in _MULTIPLIES)
