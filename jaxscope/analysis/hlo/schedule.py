"""What stands between the start and the done of a transfer in a scheduled computation."""

from __future__ import annotations

from jaxscope.analysis.hlo.lexing import operands
from jaxscope.analysis.hlo.module import Computation, Instruction

# Takes no time of its own on the device: names, views, other transfers.
_NO_WORK = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "token"),
        *("opt-barrier", "optimization-barrier", "partition-id", "replica-id", "iota", "add-dependency"),
        *("send", "recv", "domain", "get-dimension-size"),
    }
)


def computes(instruction: Instruction) -> bool:
    """Does the instruction occupy the device?"""
    opcode = instruction.opcode
    return opcode not in _NO_WORK and not opcode.endswith(("-start", "-done", "-update"))


def done_of(where: Computation, start: Instruction) -> Instruction | None:
    """The ``-done`` of a start, through ``-update``s; None if it stands in another computation."""
    current = start.name
    for instruction in where.instructions:
        if current not in instruction.tail or not instruction.opcode.endswith(("-done", "-update")):
            continue
        if current in operands(instruction.tail):
            if instruction.opcode.endswith("-done"):
                return instruction
            current = instruction.name
    return None


def overlapped(where: Computation, start: Instruction, end: Instruction | None = None) -> bool | None:
    """Does anything compute between the start and its done, in the order of the schedule?

    Args:
      end: the done, where it is not the one that ``done_of`` finds.
    """
    end = end or done_of(where, start)
    if end is None:
        return None
    inside = False
    for instruction in where.instructions:
        if instruction is start:
            inside = True
        elif instruction is end:
            return False
        elif inside and computes(instruction):
            return True
    return None
