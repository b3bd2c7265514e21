"""A compiled HLO module as data: computations and instructions, one text line each.

The line of an instruction is split into five parts. Operands and attributes are parsed by ``lexing`` only
when they are needed, because those of most instructions are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jaxscope.analysis.hlo.frames import Frames
from jaxscope.analysis.hlo.lexing import operands


class Problem(msgspec.Struct, frozen=True):
    """A line (1-based) that could not be read, shortened, and the reason."""

    line: int
    text: str


class Instruction(msgspec.Struct, frozen=True, gc=False):  # never in a circle
    """``ROOT %name = shape opcode(tail``.

    Attributes:
      tail: everything behind the opening parenthesis: operands, ``)``, attributes, metadata.
    """

    root: bool
    name: str
    shape: str
    opcode: str
    tail: str

    @property
    def operation(self) -> str:
        """Return the operation without ``-start``: ``fusion`` of ``fusion-start``.

        XLA prints any operation that runs asynchronously alone in a computation as ``NAME-start`` with the
        operation's own attributes, ``NAME-update`` and ``NAME-done``.
        """
        return self.opcode.removesuffix("-start")


class Computation:
    """One computation; its instructions are in the order of the text.

    That is the order of the schedule if the module has ``is_scheduled=true``.
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
        if self._by_name is None:
            self._by_name = {i.name: i for i in self.instructions}
        return self._by_name.get(name)

    def readers(self, name: str) -> Sequence[Instruction]:
        """Return the instructions of this computation that have ``name`` among their operands."""
        if self._readers is None:
            self._readers = {}
            for instruction in self.instructions:
                if instruction.opcode not in ("parameter", "constant"):
                    for operand in dict.fromkeys(operands(instruction.tail)):
                        self._readers.setdefault(operand, []).append(instruction)
        return self._readers.get(name, ())

    @property
    def root(self) -> Instruction | None:
        """Return the instruction marked ROOT; None in a truncated computation."""
        # Nearly always the last one, except in scheduled modules.
        for instruction in reversed(self.instructions):
            if instruction.root:
                return instruction
        return None

    def parameters(self) -> Iterator[Instruction]:
        return (i for i in self.instructions if i.opcode == "parameter")


class Module:
    """The contents of a text.

    Attributes:
      header: the attributes of the ``HloModule`` line, as text.
      computations: by name, in the order of the text.
      mentions_maps: do the letters of a shard_map or pmap stand anywhere in the text?
    """

    __slots__ = ("computations", "entry", "frames", "header", "mentions_maps", "name", "problems")

    def __init__(
        self,
        name: str | None,
        header: str,
        frames: Frames,
        computations: dict[str, Computation],
        problems: list[Problem],
        mentions_maps: bool,
    ) -> None:
        self.name = name
        self.header = header
        self.frames = frames
        self.computations = computations
        self.problems = problems
        self.mentions_maps = mentions_maps
        self.entry = next((c for c in computations.values() if c.entry), None)

    @property
    def instruction_count(self) -> int:
        return sum(len(c.instructions) for c in self.computations.values())
