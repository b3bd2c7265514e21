"""Count how often each computation of a compiled module runs, by running its single numbers.

``Runs`` starts at the entry computation and executes the instructions whose results are single numbers or
truth values, in the order of the module: a loop iterates as often as its condition says. Arrays are unknown,
and so is what is computed from them. All branches of a conditional are run, because a count is an upper bound
there. Where a condition is unknown, the loop's body is run once, and its counts are unknown.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any

from modules_binary import CALLS, INTEGERS, SIGNED, TUPLE, Computation, Instruction, Module, is_number

MAX_ITERATIONS = 100_000
FLOAT = 11  # PrimitiveType F32
# A value is a number, a list of values (a tuple), or None: unknown.
Value = Any
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "minimum": min,
    "maximum": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
# These hand their first operand on.
SAME = (
    "copy",
    "bitcast",
    "reshape",
    "broadcast",
    "convert",
    "optimization-barrier",
    "transpose",
    "copy-done",
)


def wrapped(value: Value, kind: int) -> Value:
    """Return a number as an element of the type ``kind`` holds it."""
    if kind == FLOAT and isinstance(value, (int, float)):
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if not isinstance(value, (int, float)) or kind not in INTEGERS:
        return value
    value = int(value)
    if kind == 1:
        return int(value != 0)
    bits = INTEGERS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind in SIGNED and value >> (bits - 1) else value


class Runs:
    """How often the computations of a module run in one call.

    Attributes:
      executions: computation -> number of executions; None: unknown. Missing: it never runs.
      trips: a ``while`` instruction -> the numbers of iterations that it had; None among them: unknown.
    """

    def __init__(self, module: Module) -> None:
        self.executions: dict[Computation, int | None] = {}
        self.trips: dict[Instruction, set[int | None]] = {}
        self._interesting: dict[Computation, list[Instruction]] = {}
        self._certain = True
        self._left = MAX_ITERATIONS
        self._run(module.entry, [None] * len(module.entry.instructions))

    def _run(self, computation: Computation, arguments: list[Value]) -> Value:
        """Execute a computation with these arguments, count the execution, and return the result."""
        before = self.executions.get(computation, 0)
        self.executions[computation] = before + 1 if self._certain and before is not None else None
        values: dict[Instruction, Value] = {}
        for instruction in self._listed(computation):
            values[instruction] = self._value(instruction, values, arguments)
        return values.get(computation.root)

    def _listed(self, computation: Computation) -> list[Instruction]:
        """Return the instructions that call, and those whose results are numbers or tuples."""
        if computation not in self._interesting:
            self._interesting[computation] = [
                i
                for i in computation.instructions
                if i.opcode in CALLS or i.shape["element_type"] == TUPLE or is_number(i.shape)
            ]
        return self._interesting[computation]

    def _value(self, i: Instruction, values: dict[Instruction, Value], arguments: list[Value]) -> Value:
        given = [values.get(operand) for operand in i.operands]
        if i.opcode == "parameter":
            place = i.raw["parameter_number"]
            return arguments[place] if place < len(arguments) else None
        if i.opcode == "tuple":
            return given
        if i.opcode == "get-tuple-element":
            return given[0][i.raw["tuple_index"]] if isinstance(given[0], list) else None
        if i.opcode in CALLS:
            return self._called(i, given)
        if i.opcode in ("async-update", "async-done"):
            return given[0]
        if i.opcode == "copy-start":
            return [given[0], given[0], None]
        if i.opcode == "copy-done":
            return given[0][0] if isinstance(given[0], list) else None
        if i.opcode in SAME and not is_number(i.shape):
            return given[0] if i.shape["element_type"] == TUPLE else None
        return wrapped(_scalar(i, given), i.shape["element_type"])

    def _called(self, i: Instruction, given: list[Value]) -> Value:
        if i.opcode == "while":
            return self._loop(i, given[0])
        if i.opcode == "conditional":
            results = [self._run(c, [v]) for c, v in zip(i.called, given[1:], strict=True)]
            chosen = given[0]
            if isinstance(chosen, int):
                if i.operands[0].shape["element_type"] == 1:
                    chosen = 0 if chosen else 1  # the first branch is that for true
                return results[chosen if 0 <= chosen < len(results) else -1]
            return _common(results)
        return self._run(i.called[0], given)

    def _loop(self, i: Instruction, state: Value) -> Value:
        body, condition = i.called
        seen = self.trips.setdefault(i, set())
        count = 0
        while self._left > 0:
            again = self._run(condition, [state])
            if again is None:
                break
            if not again:
                seen.add(count)
                return state
            count += 1
            self._left -= 1
            state = self._run(body, [state])
        return self._unknown_loop(i, seen)

    def _unknown_loop(self, i: Instruction, seen: set[int | None]) -> Value:
        """Run a loop of unknown length once, with an unknown state. Its counts are unknown."""
        seen.add(None)
        certain, self._certain = self._certain, False
        body, condition = i.called
        self._run(condition, [None])
        self._run(body, [None])
        self._certain = certain
        return None


def _scalar(i: Instruction, given: list[Value]) -> Value:
    if i.opcode == "constant":
        return i.constant
    if not given or (None in given and i.opcode not in ("and", "or", "select")):
        return None
    if i.opcode in SAME:
        return given[0]
    if i.opcode in ("and", "or") and None in given:
        decided = 0 if i.opcode == "and" else 1
        return decided if i.shape["element_type"] == 1 and decided in given else None
    if i.opcode in ARITHMETIC:
        return ARITHMETIC[i.opcode](*given)
    if i.opcode == "compare":
        return int(COMPARE[i.raw["comparison_direction"]](*given))
    if i.opcode == "negate":
        return -given[0]
    if i.opcode == "not":
        return ~given[0]
    if i.opcode == "select":
        return None if given[0] is None else given[1] if given[0] else given[2]
    if i.opcode in ("divide", "remainder") and given[1]:
        whole = abs(given[0]) // abs(given[1])
        whole = whole if (given[0] < 0) == (given[1] < 0) else -whole
        return whole if i.opcode == "divide" else given[0] - whole * given[1]
    return None


def _common(results: list[Value]) -> Value:
    """Return what several results have in common; None stands for the parts that differ."""
    first = results[0]
    if isinstance(first, list) and all(isinstance(r, list) and len(r) == len(first) for r in results):
        return [_common(list(members)) for members in zip(*results, strict=True)]
    return first if all(r == first for r in results) else None
