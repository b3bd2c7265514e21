"""A compiled HLO module as data: computations and instructions, one text line each.

Owns what an instruction looks like once its line has been cut in five. What stands inside the
operand list and the attributes is read by ``lexing`` when somebody asks, because most
instructions are never asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jaxscope.analysis.hlo.frames import Frames
from jaxscope.analysis.hlo.lexing import operands


class Problem(msgspec.Struct, frozen=True):
    """A line (1-based) that could not be read, shortened, and why."""

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
        """What it does, whether at once or asynchronously: ``fusion`` of ``fusion-start``.

        XLA prints any operation that runs asynchronously alone in a computation as ``NAME-start`` with the
        operation's own attributes, ``NAME-update`` and ``NAME-done``.
        """
        return self.opcode.removesuffix("-start")


class Computation:
    """One computation; its instructions stand in the order of the text.

    That is the order of the schedule where the module says ``is_scheduled=true``.
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
        """The instructions here that have ``name`` among their operands."""
        if self._readers is None:
            self._readers = {}
            for instruction in self.instructions:
                if instruction.opcode not in ("parameter", "constant"):
                    for operand in dict.fromkeys(operands(instruction.tail)):
                        self._readers.setdefault(operand, []).append(instruction)
        return self._readers.get(name, ())

    @property
    def root(self) -> Instruction | None:
        """The instruction marked ROOT; a computation that was cut short has none."""
        # Nearly always the last one, except in scheduled modules.
        for instruction in reversed(self.instructions):
            if instruction.root:
                return instruction
        return None

    def parameters(self) -> Iterator[Instruction]:
        return (i for i in self.instructions if i.opcode == "parameter")


class Module:
    """What was read of a text.

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
