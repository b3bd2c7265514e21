"""Find the line of the user's code for an instruction: from its own metadata, else from related instructions.

Instructions that the compiler creates have no line of their own. A fusion then gets the most frequent line of
the instructions in it. An instruction in a reducer or in a fusion gets the line of the instruction that calls
the computation. A collective gets the line of an operand, else of an instruction that reads its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.lexing import attribute, fields, metadata, number
from jaxscope.analysis.hlo.module import Computation, Instruction, Module
from jaxscope.schema.keys import Frame

_FIELD = '" stack_frame_id='
_FIELDS = re.compile(r'" stack_frame_id=([0-9]{1,9})[ }]')
_ESCAPED = '\\" stack_frame_id='
_NEIGHBOURS = 40
# Real fusions are nested at most two deep; the limit is for a hostile text.
MAX_NESTING = 8
MAX_LINES = 5_000  # the limit on computations and different lines in them that ``sources`` counts


def frame_id(instruction: Instruction) -> int | None:
    """Return the ``stack_frame_id`` in an instruction's metadata, which refers to the module's tables of
    Python frames. Return None if the metadata has no such id."""
    tail = instruction.tail
    at = tail.find(_FIELD)
    if at < 0 and "stack_frame_id=" not in tail:
        return None
    if at > 0 and tail[at - 1] != "\\":
        # The field follows the closing quote of op_name, since only metadata separates fields by a space.
        # In a user's name that contains the same text, the quote is escaped.
        end = tail.find("}", at)
        found = number(tail[at + len(_FIELD) : end])
        if found is not None:
            return found
    return number(fields(metadata(tail) or "").get("stack_frame_id"))


def _frame_ids(computation: Computation) -> list[int]:
    """Return the ``stack_frame_id`` of all instructions of a computation that have one. This is faster than
    ``frame_id`` for each instruction."""
    text = "\n".join([i.tail for i in computation.instructions])
    if _ESCAPED in text or "{stack_frame_id=" in text:
        return [n for n in map(frame_id, computation.instructions) if n is not None]
    return list(map(int, _FIELDS.findall(text)))


def op_name(instruction: Instruction) -> str | None:
    """Return JAX's name of the operation from which an instruction comes: ``jit(f)/dot_general``. Return None
    if the metadata has none."""
    body = metadata(instruction.tail)
    return fields(body).get("op_name") or None if body else None


class Attribution:
    """Find Python lines for the instructions of one module: the innermost line of the user's code, or the
    innermost line if all lines are in libraries. In the methods, ``computation`` is the computation that
    contains ``instruction``."""

    def __init__(self, module: Module, graph: CallGraph) -> None:
        self._frames = module.frames
        self._module = module
        self._graph = graph
        self._applied: dict[str, tuple[Computation, Instruction]] | None = None
        self._counts: dict[str, dict[int, int]] = {}
        self._sources: dict[str, list[Frame]] = {}
        self._above: dict[str, Frame | None] = {}  # computation -> the line of the instruction that calls it

    def own(self, instruction: Instruction) -> Frame | None:
        """Return the Python line in the instruction's own metadata: the innermost line of the user's code, or
        the innermost line if all lines are in libraries. Return None if the metadata has no line."""
        frame = frame_id(instruction)
        if frame is not None:
            return self._frames.attributed_frame(frame)
        return _printed(instruction)

    def line(self, computation: Computation, instruction: Instruction) -> Frame | None:
        """Return the Python line for an instruction in ``computation``, or None if no line is found. An
        instruction without a line in its metadata gets the most frequent line in the computations that it
        calls, else the line of the instruction that calls ``computation``, found in the same way."""
        found = self._own_or_inside(computation, instruction)
        if found is not None:
            return found
        passed: list[str] = []
        while computation.name not in self._above:
            self._above[computation.name] = None  # ends the loop if computations call one another in a circle
            passed.append(computation.name)
            caller = self._caller(computation)
            if caller is None:
                break
            computation = caller[0]
            found = self._own_or_inside(*caller)
            if found is not None:
                break
        else:
            found = self._above[computation.name]
        self._above.update(dict.fromkeys(passed, found))
        return found

    def _own_or_inside(self, computation: Computation, instruction: Instruction) -> Frame | None:
        """Return the Python line in the instruction's metadata, else the most frequent line in the
        computations that the instruction calls, else None."""
        found = self.own(instruction)
        if found is not None:
            return found
        inside = self.sources(self._callees(computation, instruction))
        return inside[0] if inside else None

    def near(self, computation: Computation, instruction: Instruction) -> tuple[Frame | None, bool]:
        """Return (Python line for an instruction in ``computation``, whether the line is a guess). The line
        is None if none is found.

        The line in the instruction's own metadata is no guess. A guess is the line of the nearest operand
        that has one, else of the nearest instruction that uses the result, else of the instruction that calls
        ``computation``.
        """
        own = self.own(instruction)
        if own is not None:
            return own, False
        for step in (self._operands_of, self._readers_of):
            waiting, seen = [instruction], {instruction.name}
            for _ in range(_NEIGHBOURS):
                if not waiting:
                    break
                for other in step(computation, waiting.pop(0)):
                    if other.name in seen:
                        continue
                    seen.add(other.name)
                    inside = self.sources(self._callees(computation, other))
                    found = self.own(other) or (inside[0] if inside else None)
                    if found is not None:
                        return found, True
                    waiting.append(other)
        caller = self._caller(computation)
        guess = self.line(*caller) if caller else None
        return guess, guess is not None

    def at(self, file: str, line: int) -> list[tuple[str, str]]:
        """Return (computation name, instruction name) of all instructions for which ``own`` returns the line
        ``line`` of ``file``."""
        return [
            (computation.name, instruction.name)
            for computation in self._module.computations.values()
            for instruction in computation.instructions
            if (found := self.own(instruction)) is not None and (found.file, found.line) == (file, line)
        ]

    def sources(self, computations: Iterable[Computation]) -> list[Frame]:
        """Return the Python lines of the instructions in the computations, and in all computations called
        from there, each line once, the most frequent first. Only lines from the module's tables of Python
        frames are found. Deep nesting (MAX_NESTING) and very many lines (MAX_LINES) are not read
        completely."""
        found = list(computations)
        if len(found) == 1 and found[0].name in self._sources:
            return self._sources[found[0].name]
        result: dict[int, int] = {}
        waiting = [(c, 0) for c in found]
        seen = {c.name for c in found}
        room = MAX_LINES
        while waiting and room > 0:
            computation, depth = waiting.pop()
            numbers = self._numbers(computation)
            room -= len(numbers) + 1
            for line, times in numbers.items():
                result[line] = result.get(line, 0) + times
            for call in self._graph.calls.get(computation.name, ()) if depth < MAX_NESTING else ():
                if call.callee.name not in seen:
                    seen.add(call.callee.name)
                    waiting.append((call.callee, depth + 1))
        lines = self._frames.lines
        frames = [lines[n] for n in sorted(result, key=result.__getitem__, reverse=True)]
        if len(found) == 1:
            self._sources[found[0].name] = frames
        return frames

    def _numbers(self, computation: Computation) -> dict[int, int]:
        """Count the instructions of a computation by Python line: index of the line in ``Frames.lines`` ->
        number of instructions."""
        counts = self._counts.get(computation.name)
        if counts is None:
            counts = self._counts[computation.name] = {}
            number_of = self._frames.attributed_index
            for frame in _frame_ids(computation):
                if (line := number_of(frame)) >= 0:
                    counts[line] = counts.get(line, 0) + 1
        return counts

    def _callees(self, computation: Computation, instruction: Instruction) -> list[Computation]:
        """Return the computations that ``instruction`` calls."""
        return [c.callee for c in self._graph.of(computation, instruction)]

    def _caller(self, computation: Computation) -> tuple[Computation, Instruction] | None:
        """Return (computation, instruction) of the first instruction that calls ``computation``, or else that
        names it in ``to_apply=``, as a reduction does. Return None if there is none."""
        calls = self._graph.callers.get(computation.name)
        if calls:
            return calls[0].caller, calls[0].instruction
        if self._applied is None:
            self._applied = {}
            for caller in self._module.computations.values():
                for instruction in caller.instructions:
                    if "to_apply=" in instruction.tail:
                        name = (attribute(instruction.tail, "to_apply") or "").lstrip("%")
                        self._applied.setdefault(name, (caller, instruction))
        return self._applied.get(computation.name)

    @staticmethod
    def _operands_of(computation: Computation, instruction: Instruction) -> list[Instruction]:
        """Return the operands of ``instruction``, at most _NEIGHBOURS (40)."""
        found = (computation.find(name) for name in instruction.inputs[:_NEIGHBOURS])
        return [i for i in found if i is not None]

    @staticmethod
    def _readers_of(computation: Computation, instruction: Instruction) -> list[Instruction]:
        """Return the instructions that have ``instruction`` as an operand, at most _NEIGHBOURS (40)."""
        return list(computation.readers(instruction.name)[:_NEIGHBOURS])


def _printed(instruction: Instruction) -> Frame | None:
    """Return the line in an instruction's ``source_file="m.py" source_line=3``; None if it does not have
    these attributes. XLA prints them if the text has no tables of Python frames."""
    if "source_file=" not in instruction.tail:
        return None
    found = fields(metadata(instruction.tail) or "")
    line = number(found.get("source_line"))
    if not found.get("source_file") or line is None:
        return None
    return Frame(file=found["source_file"], line=line, function="")
