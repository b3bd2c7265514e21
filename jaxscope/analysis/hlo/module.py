"""A compiled HLO module as data: computations and their instructions, one text line each.

The line of an instruction is split into five parts: ROOT, name, shape, opcode and the tail, which is
everything after ``opcode(``. ``lexing`` parses a tail only when its operands or attributes are needed, which
is rare.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jaxscope.analysis.hlo.frames import Frames
from jaxscope.analysis.hlo.lexing import operands


class Problem(msgspec.Struct, frozen=True):
    """Something in a compiled text that could not be read or analyzed.

    Attributes:
      line: the number of the line, counted from 1; 1 also if the problem concerns no single line.
      text: what is wrong, often with a part of the line.
    """

    line: int
    text: str


class Instruction(
    msgspec.Struct, frozen=True, gc=False
):  # refers only to text, so never in a reference cycle
    """One line of a computation, ``ROOT %name = shape opcode(tail``, split into parts.

    Attributes:
      root: whether the line begins with ROOT: the instruction is the result of its computation.
      shape: the shape of the result as text.
      tail: everything after the opening parenthesis: operands, ``)``, attributes, metadata.
    """

    root: bool
    name: str
    shape: str
    opcode: str
    tail: str

    @property
    def operation(self) -> str:
        """The opcode without ``-start``: ``fusion`` for ``fusion-start``."""
        # XLA prints an asynchronous operation as NAME-start (with its attributes), NAME-update and NAME-done.
        return self.opcode.removesuffix("-start")

    @property
    def is_scalar(self) -> bool:
        """Whether the result has no dimensions: ``f32[]``."""
        return self.shape.partition("[")[2].startswith("]")

    @property
    def inputs(self) -> list[str]:
        """The names of the operands. Empty for a parameter and a constant, which have a number or a value in
        their place."""
        return operands(self.tail) if self.opcode not in ("parameter", "constant") else []


class Computation:
    """One computation of a module, with its instructions in the order of the text. This is the order of
    execution if the module has ``is_scheduled=true``.

    Attributes:
      entry: whether the program begins with this computation.
      line: the number of the computation's first line in the text.
    """

    __slots__ = ("_by_name", "_readers", "entry", "instructions", "line", "name")

    def __init__(self, name: str, entry: bool, line: int, instructions: Sequence[Instruction]) -> None:
        self.name = name
        self.entry = entry
        self.line = line
        self.instructions = instructions
        self._by_name: dict[str, Instruction] | None = None
        self._readers: dict[str, list[Instruction]] | None = None

    def find(self, name: str) -> Instruction | None:
        """Return the instruction ``name`` of this computation; None if there is none."""
        if self._by_name is None:
            self._by_name = {i.name: i for i in self.instructions}
        return self._by_name.get(name)

    def operand(self, instruction: Instruction, place: int) -> Instruction | None:
        """Return operand ``place`` of ``instruction``, one of this computation; None if there is none."""
        inputs = operands(instruction.tail)
        return self.find(inputs[place]) if place < len(inputs) else None

    def readers(self, name: str) -> Sequence[Instruction]:
        """Return the instructions of this computation that have the instruction ``name`` as an operand."""
        if self._readers is None:
            self._readers = {}
            for instruction in self.instructions:
                for operand in dict.fromkeys(instruction.inputs):
                    self._readers.setdefault(operand, []).append(instruction)
        return self._readers.get(name, ())

    @property
    def root(self) -> Instruction | None:
        """The instruction marked ROOT, which is the result. None if the computation is truncated."""
        # Nearly always the last one, except in scheduled modules.
        for instruction in reversed(self.instructions):
            if instruction.root:
                return instruction
        return None

    def parameters(self) -> Iterator[Instruction]:
        """Yield the parameters in the order of the text, which may differ from that of their numbers."""
        return (i for i in self.instructions if i.opcode == "parameter")


class Module(msgspec.Struct, eq=False):
    """The contents of the text of a compiled module.

    Attributes:
      name: the name after ``HloModule``; None: the text has no such line.
      header: the attributes of the ``HloModule`` line, as text.
      frames: the tables that translate a ``stack_frame_id`` into Python frames.
      computations: name -> computation, in the order of the text.
      entry: the computation with which the program begins; None: the text is truncated.
      problems: what could not be read.
      mentions_maps: whether the text contains ``/shard_map``, ``pmap(`` or ``xmap(`` anywhere, so that the
        program may have a shard_map or pmap.
    """

    name: str | None
    header: str
    frames: Frames
    computations: dict[str, Computation]
    problems: list[Problem]
    mentions_maps: bool
    entry: Computation | None = None

    def __post_init__(self) -> None:
        self.entry = next((c for c in self.computations.values() if c.entry), None)

    @property
    def instruction_count(self) -> int:
        """The number of instructions in all computations."""
        return sum(len(c.instructions) for c in self.computations.values())
