"""Find the all-gathers of weights: the communication of fully sharded parameters (FSDP).

The operand of such an all-gather is an argument of the program, perhaps converted, with another layout, or as
a slice of a stack of weights in a loop. The result goes into a matrix product whose other operand, like a
batch, is split over the gathered axes.

The gather of a batch for a weight that is split over the same axes looks the same. So the argument must be a
weight: the program updates the argument, or the argument is the second operand of all forward products (``x @
w``, a convolution's kernel). An argument counts as updated if an output reuses its memory, or if the program
computes derivatives and has an output that could.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jaxscope.analysis.hlo import aliases, shardings
from jaxscope.analysis.hlo.attribution import op_name
from jaxscope.analysis.hlo.axes import Mesh
from jaxscope.analysis.hlo.calls import CALLS, CallGraph, names
from jaxscope.analysis.hlo.lexing import attribute, number, operand_text, operands, unquote
from jaxscope.analysis.hlo.module import Computation, Instruction
from jaxscope.schema.collectives import KINDS

# Operations whose result is their operand with another type, layout or shape, a slice of it, or the result of
# an asynchronous start.
_HANDS_ON = frozenset(
    {
        *("bitcast", "bitcast-convert", "convert", "copy", "copy-done", "reshape", "transpose", "reverse"),
        *("dynamic-slice", "slice", "optimization-barrier", "opt-barrier", "all-gather-done", "async-update"),
        "async-done",
        *(f"{opcode}-done" for opcode in ("fusion", "call", "slice", "dynamic-slice")),
    }
)
_PRODUCTS = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})
# Parts of the targets of custom calls that multiply matrices: __cublas$gemm, __onednn$matmul, __cudnn$conv...
_MULTIPLIES = ("gemm", "matmul", "cudnn$conv", "dot")
# The result of these collectives is no longer split as the operand is.
_COMBINES = tuple(kind for kind in KINDS if kind not in ("send", "recv"))
# The result of these operations differs between devices, even if no input of the computation is split.
_LEAVES_PARTS = ("all-to-all", "reduce-scatter", "ragged-all-to-all", "partition-id", "replica-id")
_DERIVATIVE = "transpose(jvp("  # in JAX's names of operations
# A custom call of TPUs that joins the parts of an array that were copied one by one.
_PUTS_TOGETHER = "ConcatBitcast"
MAX_STEPS = 4_000  # the most instructions that one search examines

Place = tuple[Computation, Instruction]


class Gathered(NamedTuple):
    """An argument of the program that an all-gather gathers for a matrix product.

    Attributes:
      argument: the path of the argument: ``params['w']``; the name of its instruction if the HLO has no path.
      beside: numbers of the program's other inputs from which the other operands of the products are
        computed, in increasing order.
      shown: whether the HLO shows that the other operand of a product is split over a gathered axis.
    """

    argument: str
    beside: list[int]
    shown: bool


class Weights:
    """Find the weights of one compiled module that are stored in shards and gathered before they are used in
    a matrix product (FSDP, fully sharded data parallelism).

    Args:
      graph: the calls of the module.
      mesh: (axis, size) of each axis of the mesh; None: unknown.
      axes_of: a function that returns the mesh axes of a collective, or None if they are unknown.
      end_of: a function that returns the last fusion of a collective that a TPU executes as a chain of
        fusions (module ``async_chains``); None for any other collective.
    """

    def __init__(
        self,
        graph: CallGraph,
        mesh: Mesh | None,
        axes_of: Callable[[Instruction], Sequence[str] | None],
        end_of: Callable[[Instruction], Place | None],
    ) -> None:
        self._graph = graph
        self._end_of = end_of
        self._parameters: dict[int, aliases.Parameter] | None = None
        self._has_derivatives = False
        # Gathered arguments, not updated by the program, that it multiplies with themselves: x @ x.T
        self.multiplied_with_themselves: set[str] = set()
        self._mesh = mesh
        self._axes_of = axes_of
        self._axes: dict[str, frozenset[str]] = {}

    def of(
        self, computation: Computation, gather: Instruction, axes: Sequence[str] | None
    ) -> Gathered | None:
        """Return the argument of the program that the all-gather ``gather`` collects for a matrix product, if
        the argument is a weight; else None.

        Args:
          computation: the computation that contains ``gather``.
          axes: the mesh axes along which ``gather`` collects; None: unknown. Without axes the result is None.
        """
        wanted = {axis.partition(":")[0] for axis in axes or ()}
        # If several arrays are gathered at once, return the first that is an argument used in a product.
        for name in operands(gather.tail) if wanted else ():
            source = self._source(computation, name)
            found = self._of_argument(computation, gather, source, wanted) if source is not None else None
            if found is not None:
                return found
        return None

    def _of_argument(
        self, computation: Computation, gather: Instruction, source: Instruction, axes: set[str]
    ) -> Gathered | None:
        """Return the result of ``of`` for one operand of ``gather``, or None if the operand is no weight. An
        input that the program multiplies with itself and does not update is added to
        ``multiplied_with_themselves``.

        Args:
          computation: the computation that contains ``gather``.
          source: the program input from which the operand comes.
          axes: the mesh axes along which ``gather`` collects.
        """
        beside: set[int] = set()
        shown = False
        forward: set[int] = set()  # positions of the gathered array among the operands of products
        backward: set[int] = set()
        for other, name, place, product in self._multiplied_with(computation, gather):
            (backward if "transpose(" in (op_name(product) or "") else forward).add(place)
            if self._source(other, name) is source and not self._is_updated(source):
                self.multiplied_with_themselves.add(op_name(source) or source.name)
            for one in self._made_of(other, name, axes):
                if one.opcode != "parameter":
                    shown |= one.opcode.startswith(_LEAVES_PARTS)
                elif one.name != source.name:
                    # With JAX 0.12 the HLO does not contain the shardings of inputs.
                    shown |= bool(self._split(one) & axes)
                    at = number(operand_text(one.tail))
                    beside.update(() if at is None else (at,))
        if not self._is_weight(source, forward, backward):
            return None
        return Gathered(op_name(source) or source.name, sorted(beside), shown)

    def _is_updated(self, source: Instruction) -> bool:
        """Return whether the program updates its input ``source``: an output reuses the input's memory, or
        the program computes derivatives and has an output that could."""
        if self._parameters is None:
            module = self._graph.module
            self._parameters = {p.number: p for p in aliases.read(module).parameters}
            each = (i for c in module.computations.values() for i in c.instructions)
            self._has_derivatives = any(_DERIVATIVE in i.tail for i in each)
        at = number(operand_text(source.tail))
        parameter = None if at is None else self._parameters.get(at)
        if parameter is None:
            return False
        return bool(parameter.aliased) or (self._has_derivatives and parameter.matches > 0)

    def _is_weight(self, source: Instruction, forward: set[int], backward: set[int]) -> bool:
        """Return whether the program input ``source`` is a weight. ``forward`` and ``backward`` are the
        positions that it has among the operands of products of the forward and of the backward pass."""
        if self._is_updated(source):
            return bool(forward or backward)
        return bool(forward) and 0 not in forward

    def _split(self, parameter: Instruction) -> frozenset[str]:
        """Return the mesh axes over which an input of the program is split; empty if the text has no sharding
        of the input."""
        if parameter.name not in self._axes:
            text = attribute(parameter.tail, "sharding")
            spelled = shardings.read(text, self._mesh) if text else None
            found = spelled.dimensions if spelled is not None else None
            self._axes[parameter.name] = frozenset(
                axis.partition(":")[0] for dimension in found or () for axis in dimension
            )
        return self._axes[parameter.name]

    def _source(self, computation: Computation, name: str) -> Instruction | None:
        """Return the program input that the instruction ``name`` of ``computation`` only converts, slices,
        copies or gives another layout, perhaps in several steps, in fusions and in loops. Return None if the
        value is computed in another way."""
        for _ in range(MAX_STEPS):
            instruction = computation.find(name)
            if instruction is None:
                return None
            if instruction.opcode == "parameter":
                if computation.entry:
                    return instruction
                outside = self._passed(computation, instruction)
                if outside is None:
                    return None
                computation, name = outside
            elif instruction.opcode == "get-tuple-element":
                element = self._element(computation, instruction)
                if element is None:
                    return None
                computation, name = element
            elif instruction.operation in CALLS:
                body = self._body(computation, instruction)
                if body is None or body.root is None or not _only_hands_on(body):
                    return None
                computation, name = body, body.root.name
            elif instruction.operation in _HANDS_ON or _puts_together(instruction):
                inputs = operands(instruction.tail)
                if not inputs:
                    return None
                name = inputs[0]
            else:
                return None
        return None

    def _body(self, computation: Computation, instruction: Instruction) -> Computation | None:
        """Return the computation that a fusion or a call calls; None if it is unknown."""
        found = self._graph.of(computation, instruction)
        return found[0].callee if found else None

    def _passed(self, body: Computation, parameter: Instruction) -> tuple[Computation, str] | None:
        """Return the instruction whose value is passed for ``parameter`` to the computation ``body``, as (its
        computation, its name). Only a fusion, a call or an asynchronous call counts as a caller; None unless
        exactly one calls ``body``."""
        at = number(operand_text(parameter.tail))
        calls = [c for c in self._graph.callers.get(body.name, ()) if c.instruction.operation in CALLS]
        if at is None or len(calls) != 1:
            return None
        inputs = operands(calls[0].instruction.tail)
        return (calls[0].caller, inputs[at]) if at < len(inputs) else None

    def _element(self, computation: Computation, instruction: Instruction) -> tuple[Computation, str] | None:
        """Return (computation, name) of the value that a get-tuple-element selects; None if unknown. The
        value is known for a tuple in the same computation, and for a member of a loop's state that no
        iteration changes."""
        at, carried = number(attribute(instruction.tail, "index")), computation.operand(instruction, 0)
        if at is None or carried is None:
            return None
        if carried.opcode == "tuple":
            return _operand(computation, carried, at)
        if carried.opcode == "parameter":  # of a loop's body: the initial value, if no iteration changes it
            root = computation.root
            again = _operand(computation, root, at) if root is not None and root.opcode == "tuple" else None
            same = computation.find(again[1]) if again is not None else None
            if same is None or same.opcode != "get-tuple-element" or attribute(same.tail, "index") != str(at):
                return None
            loops = [
                c for c in self._graph.callers.get(computation.name, ()) if c.instruction.opcode == "while"
            ]
            return self._into_loop(loops[0].caller, loops[0].instruction, at) if len(loops) == 1 else None
        if carried.opcode == "while":
            return self._into_loop(computation, carried, at)
        return None

    def _into_loop(
        self, computation: Computation, loop: Instruction, at: int
    ) -> tuple[Computation, str] | None:
        """Return (computation, name) of the initial value of member ``at`` of the tuple that ``loop``
        carries; None if unknown. ``computation`` contains ``loop``."""
        start = computation.operand(loop, 0)
        return _operand(computation, start, at) if start is not None and start.opcode == "tuple" else None

    def _multiplied_with(
        self, computation: Computation, gather: Instruction
    ) -> Iterator[tuple[Computation, str, int, Instruction]]:
        """Yield (computation, other operand, position, product) for each matrix product with the result of
        ``gather``, perhaps converted. ``position`` is the number of the gathered operand, ``computation``
        contains the product."""
        end = self._end_of(gather)
        waiting: list[Place] = [(computation, gather), *([end] if end is not None else [])]
        seen = {(computation.name, gather.name)}
        while waiting and len(seen) < MAX_STEPS:
            place, one = waiting.pop()
            nexts: list[Place] = []
            for reader in place.readers(one.name):
                inputs = operands(reader.tail)
                if reader.opcode in _PRODUCTS or _multiplies(reader):
                    at = inputs.index(one.name) if one.name in inputs else 0
                    yield from ((place, name, at, reader) for name in inputs[:2] if name != one.name)
                elif reader.operation in CALLS:
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
                        if c.instruction.operation in CALLS
                        for element in c.caller.readers(c.instruction.name)
                        if attribute(element.tail, "index") in places or element.operation in CALLS
                    ]
                elif reader.operation in _HANDS_ON or reader.opcode == "get-tuple-element":
                    nexts.append((place, reader))
            if one.root:  # the result of a fusion that only passes it on, or that ends with the gather
                nexts += [
                    (c.caller, c.instruction)
                    for c in self._graph.callers.get(place.name, ())
                    if c.instruction.operation in CALLS
                ]
            for next_computation, next_one in nexts:
                key = (next_computation.name, next_one.name)
                if key not in seen:
                    seen.add(key)
                    waiting.append((next_computation, next_one))

    def _made_of(self, computation: Computation, name: str, axes: set[str]) -> Iterator[Instruction]:
        """Yield the instructions that decide whether the value ``name`` differs between devices: the program
        inputs, partition ids and replica ids from which the value is computed, and collectives along ``axes``
        or along unknown axes."""
        waiting, seen = [(computation, name)], {(computation.name, name)}
        while waiting and len(seen) < MAX_STEPS:
            place, current = waiting.pop()
            instruction = place.find(current)
            if instruction is None:
                continue
            if instruction.opcode.startswith(_COMBINES) and self._along(instruction, axes):
                yield instruction
                continue  # the operands of the collective do not matter
            nexts: list[tuple[Computation, str] | None] = []
            if instruction.opcode in ("partition-id", "replica-id"):
                yield instruction
            elif instruction.opcode == "parameter":
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
        """Return whether ``collective`` runs along one of ``axes``, or along unknown axes. False for a
        ``-done``, because its ``-start`` counts."""
        if collective.opcode.endswith("-done"):
            return False  # counted at its start
        own = self._axes_of(collective)
        return own is None or not axes.isdisjoint(axis.partition(":")[0] for axis in own)

    def _elements(
        self, computation: Computation, instruction: Instruction
    ) -> list[tuple[Computation, str] | None]:
        """Return (computation, name) of each value that a get-tuple-element may select; None for an unknown
        value. For a member of the tuple that a loop carries, return the initial value and the value after an
        iteration. For any other tuple with unknown members, return the tuple."""
        at, inputs = number(attribute(instruction.tail, "index")), operands(instruction.tail)
        carried = computation.find(inputs[0]) if inputs else None
        if at is None or carried is None:
            return []
        if carried.opcode == "tuple":
            return [_operand(computation, carried, at)]
        if carried.opcode == "parameter" and not computation.entry:
            loops = [
                c for c in self._graph.callers.get(computation.name, ()) if c.instruction.opcode == "while"
            ]
            before = [self._into_loop(c.caller, c.instruction, at) for c in loops]
            return [*before, _of_root(computation, at)]
        if carried.opcode == "while":
            bodies = names(attribute(carried.tail, "body"))
            body = self._graph.module.computations.get(bodies[0]) if bodies else None
            after = [_of_root(body, at)] if body is not None else []
            return [self._into_loop(computation, carried, at), *after]
        return [(computation, name) for name in inputs]


def _operand(computation: Computation, instruction: Instruction, at: int) -> tuple[Computation, str] | None:
    """Return (``computation``, name of operand ``at`` of ``instruction``); None if there is no such
    operand."""
    inputs = operands(instruction.tail)
    return (computation, inputs[at]) if 0 <= at < len(inputs) else None


def _of_root(body: Computation, at: int) -> tuple[Computation, str] | None:
    """Return (``body``, name of member ``at`` of the tuple that ``body`` returns); None if ``body`` does not
    return such a tuple."""
    root = body.root
    return _operand(body, root, at) if root is not None and root.opcode == "tuple" else None


def _only_hands_on(body: Computation) -> bool:
    """Return whether the computation ``body`` only passes an array on, perhaps converted or sliced. It may
    also compute scalars, such as the indices of the slice."""
    return all(
        i.operation in _HANDS_ON or i.opcode in ("parameter", "constant") or i.is_scalar  # such as an index
        for i in body.instructions
    )


def _puts_together(instruction: Instruction) -> bool:
    """Return whether an instruction joins the parts of an array that a TPU copied one by one."""
    return instruction.opcode == "custom-call" and _PUTS_TOGETHER in instruction.tail


def _multiplies(instruction: Instruction) -> bool:
    """Return whether an instruction is a custom call that multiplies matrices: cuBLAS, oneDNN, cuDNN, ..."""
    if instruction.opcode != "custom-call":
        return False
    target = unquote(attribute(instruction.tail, "custom_call_target") or "").casefold()
    return any(word in target for word in _MULTIPLIES)
