"""Compute a lower bound of the bytes that one call of a program moves between a device's memory and its
cores.

Each argument and each result counts once, without padding, and only if it is certainly read or written as a
whole. If an argument is only sliced, only the slices count. Not counted are:

- an argument that is only returned, or only read by an instruction that may read a part of it (an unknown
  kernel, a branch);
- a result that overwrites a part of an argument, or that is written by a loop, a branch or an unknown kernel;
- values in the host's memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.lexing import attribute, number, operand_text, operands, unquote
from jaxscope.analysis.hlo.module import Computation, Instruction

_SLICES = (
    "dynamic-slice", "slice", "gather", "dynamic-update-slice", "scatter", "pad", "select-and-scatter",
    "reduce-window",
)  # fmt: skip
_VIEWS = ("bitcast", "reshape", "get-tuple-element", "opt-barrier", "optimization-barrier", "domain")
# These operations may read only a part of an operand, or nothing.
_MAYBE = (
    "conditional", "call", "custom-call", "async", "async-update", "async-done", "tuple", "copy-done",
    "infeed", "outfeed", "after-all", "add-dependency", "get-dimension-size", "set-dimension-size",
)  # fmt: skip
_NOT_WRITTEN = (
    "parameter", "while", "call", "conditional", "custom-call", "dynamic-update-slice", "scatter", "async",
    "infeed",
)  # fmt: skip
# Prefixes of library kernels that read all of their operands and write all of their results.
_MATRICES = ("__cublas", "__cudnn")
MAX_DEPTH = 12
MAX_STEPS = 200_000


class Traffic:
    """Compute a lower bound of the bytes that one call of a program moves between a device's memory and its
    cores.

    Args:
      graph: the calls of the module.
      executions: name of a computation -> how often it runs in one call of the program; None: unknown.
    """

    def __init__(self, graph: CallGraph, executions: Mapping[str, int | None]) -> None:
        self._graph = graph
        self._executions = executions
        self._left = MAX_STEPS

    def total(self) -> int | None:
        """Return a lower bound on the bytes that one call moves between memory and cores. Return None if the
        program has no entry computation, or is too large to follow."""
        entry = self._graph.module.entry
        if entry is None or entry.root is None:
            return None
        read = sum(self._read(entry, p.name, _size(p.shape), 1, 0) for p in entry.parameters())
        total = read + self._written(entry, entry.root)
        return total if self._left > 0 else None

    def _read(self, computation: Computation, name: str, size: int, times: int, depth: int) -> int:
        """Return a lower bound on the bytes that are read of one value in one call of the program. The value
        is the result of the instruction ``name`` in ``computation``.

        Args:
          size: the bytes of the whole value. The result is at most ``size``.
          times: how often ``computation`` runs in one call of the program. The bytes of a slice are
            multiplied by this number.
          depth: how many views and loops were followed to get here.
        """
        most = 0
        for reader in computation.readers(name):
            self._left -= 1
            if most >= size or depth > MAX_DEPTH or self._left < 0:
                break
            most = max(most, self._by(computation, reader, name, size, times, depth))
        return min(most, size)

    def _by(
        self, computation: Computation, reader: Instruction, name: str, size: int, times: int, depth: int
    ) -> int:
        """Return a lower bound on the bytes that the instruction ``reader`` reads of the value ``name``. The
        arguments are those of ``_read``."""
        opcode = reader.operation
        if opcode in _VIEWS:
            return self._read(computation, reader.name, size, times, depth + 1)
        if opcode in ("dynamic-slice", "slice"):
            return times * _size(reader.shape) if operands(reader.tail)[:1] == [name] else 0
        if opcode == "fusion":
            return self._in_fusion(computation, reader, name, size, times)
        if opcode == "tuple":
            return self._in_loops(computation, reader, name, size, depth)
        if opcode == "custom-call" and _is_matrix(reader):
            return size
        return 0 if opcode in _SLICES or opcode in _MAYBE or opcode == "while" or _strides(reader) else size

    def _in_fusion(
        self, computation: Computation, fusion: Instruction, name: str, size: int, times: int
    ) -> int:
        """Return a lower bound on the bytes that ``fusion`` reads of the value ``name``. The arguments are
        those of ``_read``."""
        calls = self._graph.of(computation, fusion)
        if len(calls) != 1:
            return 0
        body = calls[0].callee
        places = [i for i, o in enumerate(operands(fusion.tail)) if o == name]
        found = [p for p in body.parameters() if number(operand_text(p.tail).strip()) in places]
        inside = self._inside(body)
        if not any(i.opcode in _SLICES or _strides(i) for i in inside):
            if any(i.opcode in _MAYBE and i.opcode != "tuple" for i in inside):
                return 0
            return size if any(body.readers(p.name) for p in found) else 0
        # A fusion reads only the parts of a value that it uses, so with a slice in it perhaps not everything.
        most = 0
        for parameter in found:
            readers = body.readers(parameter.name)
            if readers and all(r.opcode in ("dynamic-slice", "slice") for r in readers):
                kept = [r for r in readers if not any(o.opcode in _SLICES for o in body.readers(r.name))]
                most = max([most, *(times * _size(r.shape) for r in kept)])
        return most

    def _inside(self, body: Computation) -> list[Instruction]:
        """Return the instructions of a fusion's body and of all computations that it calls."""
        found: list[Instruction] = []
        waiting, seen = [body], {body.name}
        while waiting:
            one = waiting.pop()
            found += one.instructions
            self._left -= len(one.instructions)
            for call in self._graph.calls.get(one.name, ()):
                if call.callee.name not in seen:
                    seen.add(call.callee.name)
                    waiting.append(call.callee)
        return found

    def _in_loops(
        self, computation: Computation, packed: Instruction, name: str, size: int, depth: int
    ) -> int:
        """Return a lower bound on the bytes that loops in ``computation`` read of one value in one call of
        the program. The value is the result of the instruction ``name`` in ``computation``.

        Args:
          packed: the tuple that contains the value; it is the operand of the loops.
          size: the bytes of the whole value.
          depth: how many views and loops were followed to get here.
        """
        places = [i for i, o in enumerate(operands(packed.tail)) if o == name]
        most = 0
        for loop in computation.readers(packed.name):
            if loop.opcode != "while":
                continue
            for call in self._graph.of(computation, loop):
                times = self._executions.get(call.callee.name)
                if call.key != "body" or not times:
                    continue
                for parameter in call.callee.parameters():
                    for member in call.callee.readers(parameter.name):
                        if (
                            member.opcode == "get-tuple-element"
                            and number(attribute(member.tail, "index")) in places
                        ):
                            most = max(most, self._read(call.callee, member.name, size, times, depth + 1))
        return most

    def _written(self, entry: Computation, root: Instruction) -> int:
        """Return a lower bound on the bytes that are written of the results of the program, which ``root``
        returns."""
        names = operands(root.tail) if root.opcode == "tuple" else [root.name]
        return sum(self._bytes_written_by(entry, name) for name in names)

    def _bytes_written_by(self, entry: Computation, name: str) -> int:
        """Return the bytes of the result ``name`` of the program, or 0 if it is perhaps not written as a
        whole."""
        writer = entry.find(name)
        for _ in range(MAX_DEPTH):
            if writer is None or (writer.opcode not in _VIEWS and not writer.opcode.endswith("-done")):
                break
            writer = entry.operand(writer, 0)
        if writer is None or writer.opcode in _VIEWS or writer.opcode == "tuple":
            return 0
        if writer.operation in _NOT_WRITTEN and not _is_matrix(writer):
            return 0
        if writer.operation == "fusion":
            calls = self._graph.of(entry, writer)
            if len(calls) != 1 or any(
                i.opcode in ("dynamic-update-slice", "scatter", "custom-call")
                for i in self._inside(calls[0].callee)
            ):
                return 0
        found = entry.find(name)
        return _size(found.shape) if found is not None else 0


def _size(text: str) -> int:
    """Return the bytes of an array in the device's memory; 0 for tuples, arrays in the host's memory and
    unknown sizes."""
    shape = shapes.parse(text)
    if (
        not isinstance(shape, shapes.Array)
        or shape.space == shapes.HOST
        or any(d is None for d in shape.dims)
    ):
        return 0
    return shape.bytes or 0


def _is_matrix(instruction: Instruction) -> bool:
    """Return whether an instruction is a call of a library (cuBLAS, cuDNN) that reads its operands and writes
    its results as a whole."""
    target = (
        attribute(instruction.tail, "custom_call_target") if instruction.operation == "custom-call" else None
    )
    return target is not None and unquote(target).startswith(_MATRICES)


def _strides(instruction: Instruction) -> bool:
    """Return whether the instruction is a convolution that may skip elements of its input."""
    return instruction.opcode == "convolution" and "stride=" in (attribute(instruction.tail, "window") or "")
