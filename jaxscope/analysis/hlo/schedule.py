"""Find whether anything computes between the start and the done of an asynchronous transfer. The instructions
of the computation must be in the order of execution."""

from __future__ import annotations

from jaxscope.analysis.hlo.lexing import operands
from jaxscope.analysis.hlo.module import Computation, Instruction

# These operations take no time of their own on the device: names, views, other transfers.
_NO_WORK = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "token"),
        *("opt-barrier", "optimization-barrier", "partition-id", "replica-id", "iota", "add-dependency"),
        *("send", "recv", "domain", "get-dimension-size"),
    }
)
MAX_UPDATES = 1_000


def computes(instruction: Instruction) -> bool:
    """Return whether an instruction keeps the device busy. Return False for an instruction that takes no time
    of its own, such as ``tuple`` and ``bitcast``, and for an instruction of a transfer (``-start``,
    ``-update``, ``-done``, ``send``, ``recv``)."""
    opcode = instruction.opcode
    return opcode not in _NO_WORK and not opcode.endswith(("-start", "-done", "-update"))


class Schedule:
    """The instructions of one computation, in the order of execution. If two instructions have the same name,
    as in a damaged text, the last one counts."""

    def __init__(self, computation: Computation) -> None:
        self._place: dict[str, int] = {}
        self._work: list[int] = []  # how many instructions compute before each place
        self._done: dict[str, Instruction] = {}
        work = 0
        for place, instruction in enumerate(computation.instructions):
            self._place[instruction.name] = place
            self._work.append(work)
            work += computes(instruction)
            if instruction.opcode.endswith(("-done", "-update")):
                for name in operands(instruction.tail)[:1]:
                    self._done.setdefault(name, instruction)

    def done_of(self, start: Instruction) -> Instruction | None:
        """Return the ``-done`` instruction of the transfer that ``start`` begins, perhaps after ``-update``
        instructions. Return None if it is not in this computation."""
        found = self._done.get(start.name)
        for _ in range(MAX_UPDATES):
            if found is None or found.opcode.endswith("-done"):
                return found
            found = self._done.get(found.name)
        return None

    def overlapped(self, start: Instruction, end: Instruction | None = None) -> bool | None:
        """Return whether any instruction computes between ``start`` and ``end``, which begin and end a
        transfer. If ``end`` is None, the instruction that ``done_of`` finds is used. Return None if one of
        the two instructions is not in this computation, or ``end`` is not after ``start``."""
        end = end or self.done_of(start)
        first = self._place.get(start.name)
        last = None if end is None else self._place.get(end.name)
        if first is None or last is None or last <= first:
            return None
        # The start itself may be a fusion that computes. Only instructions after it count.
        return self._work[last] > self._work[first + 1]
