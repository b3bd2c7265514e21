"""Find the trip counts of while loops: printed by the backend, or computed from the induction variable.

CPU and GPU print ``backend_config={"known_trip_count":{"n":"6"}}``; TPU does not. If no count is printed, or
if it is wrong because an unsigned counter counts down, three parts of the loop are read: the condition,
``compare(element i, bound)``; what the body adds, ``element i + step``; and the initial value of element i
when the loop is entered. "Element i" is member i of the tuple that the loop carries from iteration to
iteration. Values are followed through copies, bitcasts, conversions, tuples, fusions and calls. The initial
value is also followed into outer loops that do not change the element.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.calls import CALLS, CallGraph, Trips, names
from jaxscope.analysis.hlo.lexing import attribute, backend_config, number, operand_text
from jaxscope.analysis.hlo.module import Computation, Instruction

_TYPE = re.compile(r"([su])(8|16|32|64)\[\]")
_EXACT = {"f32[]": 2**24, "f64[]": 2**53}  # the type has every integer up to here
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_PASSES = frozenset({"copy", "bitcast", "convert", "reshape", "optimization-barrier", "broadcast"})
MAX_DEPTH = 60
# The most instructions that are examined for one loop, and for all loops of a module, because a hostile text
# can have values with very many sources. A long line counts as several.
MAX_STEPS = 2_000
MAX_STEPS_IN_ALL = 300_000
_LONG = 300


class Loop(msgspec.Struct, frozen=True):
    """A while loop that runs.

    Attributes:
      trip_count: iterations each time the loop is entered; None: the number depends on data or is unknown.
      how: ``printed`` or ``inferred``, the origin of ``trip_count``; None: there is no count.
      computation: the computation that contains the loop.
      body: the computation that the loop repeats; None: unknown.
      executions: how often the whole loop is entered in one call of the program, an upper bound in a branch
        of a conditional; None: unknown.
    """

    name: str
    trip_count: int | None
    how: str | None
    computation: str
    body: str | None
    executions: int | None = None


class Constant(NamedTuple):
    """A known integer; 0 or 1 for a boolean."""

    value: int


class Element(NamedTuple):
    """A value of the form "parameter + constant" or "member of a tuple parameter + constant", such as the
    loop counter after an iteration.

    Attributes:
      parameter: the number of the parameter.
      member: the number of the member in the parameter, a tuple; -1: the parameter itself, which is no tuple.
      offset: the constant.
    """

    parameter: int
    member: int
    offset: int = 0


class Comparison(NamedTuple):
    """The comparison ``left < right`` for the ``direction`` ``LT``; others are ``LE``, ``GT``, ``GE``,
    ``EQ``, ``NE``."""

    direction: str
    left: Value
    right: Value


Value = Constant | Element | Comparison | None


class CallFrame(NamedTuple):
    """A call whose called computation is evaluated. The parameters of this computation have the values of the
    call's operands.

    Attributes:
      caller: the computation that contains the call.
      call: the calling instruction.
      outer: the call through which the evaluation came to ``caller``; None if the evaluation began in
        ``caller``.
    """

    caller: Computation
    call: Instruction
    outer: CallFrame | None


def find(graph: CallGraph) -> tuple[list[Loop], dict[str, int | None]]:
    """Return (loops, executions). ``loops`` are all loops that run, in the order of the text. ``executions``
    is name of a computation -> how often it runs in one call of the program, as in
    ``CallGraph.executions``; None: unknown."""
    found: list[Loop] = []
    left = MAX_STEPS_IN_ALL
    for computation, instruction in graph.all("while", "while-start"):
        reading = _Reading(graph, min(left, MAX_STEPS))
        count, how = trip_count(graph, computation, instruction, reading)
        left -= reading.steps
        body = names(attribute(instruction.tail, "body"))
        found.append(Loop(instruction.name, count, how, computation.name, body[0] if body else None))
    runs = graph.executions(trips(found))
    return [msgspec.structs.replace(loop, executions=runs.get(loop.computation)) for loop in found], runs


def trips(loops: list[Loop]) -> Trips:
    """Return the trip counts of ``loops``: (computation, name of the loop) -> trip count; None:
    unknown."""
    return {(loop.computation, loop.name): loop.trip_count for loop in loops}


def trip_count(
    graph: CallGraph, caller: Computation, loop: Instruction, reading: _Reading
) -> tuple[int | None, str | None]:
    """Return (trip count, how it was found) of the loop ``loop`` in the computation ``caller``. The second
    member is ``printed`` if the backend printed the count, or ``inferred`` if it was computed from the loop's
    condition and body. Both are None if the count is unknown. ``reading`` must be new for each loop."""
    printed = printed_count(loop)
    if printed is not None and not _unsigned_goes_down(loop):
        return printed, "printed"
    calls = {c.key: c.callee for c in graph.of(caller, loop)}
    condition, body = calls.get("condition"), calls.get("body")
    if condition is None or body is None:
        return None, None
    test = reading.value(condition, condition.root)
    if not isinstance(test, Comparison):
        return None, None
    left, right, direction = test.left, test.right, test.direction
    if isinstance(left, Constant):
        left, right, direction = right, left, _MIRRORED.get(direction, "")
    if not isinstance(left, Element) or left.parameter != 0:
        return None, None
    bound = right if isinstance(right, Constant) else reading.unchanged(caller, loop, body, right)
    step = reading.step(body, left.member)
    start = reading.initial(caller, loop, left.member)
    if bound is None or step is None or start is None:
        return None, None
    limits = _limits(loop, left.member)
    step, offset = _signed(step, limits), _signed(left.offset, limits)
    count = iterations(start.value + offset, bound.value, step, direction)
    if count is None:
        return None, None
    last = start.value + count * step
    values = (start.value, start.value + offset, last, last + offset)
    if limits is not None and not all(limits[0] <= value <= limits[1] for value in values):
        return None, None  # it goes around the end of its type
    if max(map(abs, values)) > reading.exact:
        return None, None  # its f32 is another number
    return count, "inferred"


def printed_count(loop: Instruction) -> int | None:
    """Return the trip count that the backend has printed for ``loop`` (``"known_trip_count":{"n":"6"}`` ->
    6), or None."""
    config = backend_config(loop.tail)
    known = config.get("known_trip_count")
    count = known.get("n") if isinstance(known, dict) else None
    if isinstance(count, str):
        return number(count, 18)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _unsigned_goes_down(loop: Instruction) -> bool:
    """Return whether the counter of a loop is unsigned and counts down. Its step is then printed as a large
    number (4294967295 for -1), and XLA prints a wrong trip count: 1 for ``while i > 0`` from 9."""
    config = backend_config(loop.tail)
    known, variable = config.get("known_init_step"), config.get("known_induction_variable")
    if not isinstance(known, dict) or not isinstance(variable, dict):
        return False
    step, place = number(str(known.get("step")), 20), number(str(variable.get("tuple_index", "0")))
    limits = _limits(loop, place if place is not None else -1)
    return limits is not None and step is not None and _signed(step, limits) != step


def _limits(loop: Instruction, member: int) -> tuple[int, int] | None:
    """Return the smallest and the largest value of the type of an element that the loop carries. Return None
    if it is no integer or its type is unknown. ``member`` is the number of the element; -1: the loop carries
    a single value, no tuple."""
    kinds = shapes.members(loop.shape)
    return _range(kinds[max(0, member)]) if member < len(kinds) else None


def _range(shape: str) -> tuple[int, int] | None:
    """Return the smallest and the largest value of a scalar integer or boolean of this shape: ``s8[]`` ->
    (-128, 127). For ``f32[]`` and ``f64[]``, all integers between the two numbers are exact. Return None for
    another shape."""
    found = _TYPE.match(shape)
    if found is None:
        exact = _EXACT.get(shape[:5])
        return (-exact, exact) if exact is not None else (0, 1) if shape.startswith("pred[]") else None
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _signed(step: int, limits: tuple[int, int] | None) -> int:
    """Return the signed number that ``step`` means for an unsigned type with these limits: 4294967295 -> -1.
    The step of another type is returned unchanged."""
    if limits is None or limits[0] < 0 or not limits[1] // 2 < step <= limits[1]:
        return step
    return step - limits[1] - 1


_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ"}


def iterations(start: int, bound: int, step: int, direction: str) -> int | None:
    """Return how often the loop ``while start <direction> bound: start += step`` iterates. The direction is
    ``LT``, ``LE``, ``GT``, ``GE`` or ``NE``. Return None for another direction, or if the loop never ends."""
    if direction == "NE":
        if start == bound:
            return 0
        steps, rest = divmod(bound - start, step) if step else (-1, 0)
        return steps if steps >= 0 and not rest else None
    if direction in ("LE", "GE"):
        bound += 1 if direction == "LE" else -1
        direction = {"LE": "LT", "GE": "GT"}[direction]
    if direction == "GT":
        start, bound, step, direction = -start, -bound, -step, "LT"
    if direction != "LT":
        return None
    if start >= bound:
        return 0
    return -(-(bound - start) // step) if step > 0 else None


class _Reading:
    """Evaluate the condition and the body of one loop symbolically: ``i < 10``, ``i + 1``, where ``i`` is an
    element of the tuple that the loop carries from iteration to iteration.

    Args:
      limit: the most instructions to examine, because a hostile text can have values with very many sources.

    Attributes:
      steps: the instructions examined so far; a long line counts as several.
      exact: the values are exact only if no element that the loop carries is larger or less than minus this.
    """

    def __init__(self, graph: CallGraph, limit: int) -> None:
        self._graph = graph
        self._limit = limit
        self.steps = 0
        self.exact = float("inf")

    def _may_examine(self, instruction: Instruction, depth: int) -> bool:
        """Count ``instruction`` in ``steps``, and return whether it may be examined."""
        self.steps += 1 + len(instruction.tail) // _LONG
        return depth <= MAX_DEPTH and self.steps <= self._limit

    def value(
        self,
        computation: Computation,
        instruction: Instruction | None,
        index: int = -1,
        inside: CallFrame | None = None,
        depth: int = 0,
    ) -> Value:
        """Return the value of ``instruction`` in ``computation``, or of one of its members if it is a tuple.
        Return None if the value is unknown, or if ``instruction`` is None.

        Args:
          index: the number of the member; -1: the whole value, which is no tuple.
          inside: the call through which the evaluation went into ``computation``; None if the evaluation
            began in ``computation``.
          depth: the number of instructions that were followed to get here.
        """
        if instruction is None or not self._may_examine(instruction, depth):
            return None
        opcode = instruction.opcode
        if opcode == "parameter":
            place = number(operand_text(instruction.tail).strip())
            if place is None or inside is None:
                return None if place is None else Element(place, index)
            outer = inside.caller.operand(inside.call, place)
            return self.value(inside.caller, outer, index, inside.outer, depth + 1)
        if opcode in _PASSES or _hands_on(opcode):
            operand = computation.operand(instruction, 0)
            found = self.value(computation, operand, index, inside, depth + 1)
            if opcode == "convert" and operand is not None:
                return self._converted(found, operand.shape, instruction.shape)
            return found
        callee = self._callee(computation, instruction)
        if callee is not None:
            into = CallFrame(computation, instruction, inside)
            return self.value(callee, callee.root, index, into, depth + 1)
        if index >= 0:
            member = computation.operand(instruction, index) if opcode == "tuple" else None
            return self.value(computation, member, -1, inside, depth + 1)
        if opcode == "constant":
            text = operand_text(instruction.tail).strip()
            if text in ("true", "false"):
                return Constant(int(text == "true"))
            return Constant(int(text)) if _INTEGER.match(text) else None
        if opcode == "get-tuple-element":
            place = number(attribute(instruction.tail, "index"))
            if place is None:
                return None
            return self.value(computation, computation.operand(instruction, 0), place, inside, depth + 1)
        if opcode in ("add", "subtract", "compare"):
            left = self.value(computation, computation.operand(instruction, 0), -1, inside, depth + 1)
            right = self.value(computation, computation.operand(instruction, 1), -1, inside, depth + 1)
            if opcode == "compare":
                return Comparison(attribute(instruction.tail, "direction") or "", left, right)
            return _sum(left, right, 1 if opcode == "add" else -1)
        return None

    def _converted(self, value: Value, source: str, target: str) -> Value:
        """Return ``value`` after a conversion from the shape ``source`` to ``target``. Return None if the
        conversion may change the value. An element that becomes an f32 or f64 counts as unchanged, and
        ``exact`` has the largest element for which this is true."""
        before, after = _range(source), _range(target)
        if isinstance(value, Constant):
            before = (value.value, value.value)
        elif isinstance(value, Element) and after is not None and target.startswith(tuple(_EXACT)):
            self.exact = min(self.exact, after[1] - abs(value.offset))
            return value
        fits = before is not None and after is not None and after[0] <= before[0] and before[1] <= after[1]
        return value if fits or isinstance(value, Comparison) else None

    def _callee(self, computation: Computation, instruction: Instruction) -> Computation | None:
        """Return the computation that a fusion or a call calls; None for another instruction."""
        if instruction.operation not in CALLS:
            return None
        calls = self._graph.of(computation, instruction)
        return calls[0].callee if calls else None

    def step(self, body: Computation, index: int) -> int | None:
        """Return how much one iteration of a loop with the body ``body`` adds to element ``index`` of the
        tuple that the loop carries, or None if this is unknown."""
        value = self.value(body, body.root, index)
        if isinstance(value, Element) and value.parameter == 0 and value.member == index:
            return value.offset
        return None

    def unchanged(
        self, caller: Computation, loop: Instruction, body: Computation, value: Value
    ) -> Constant | None:
        """Return the constant that ``value`` is in every iteration of a loop, if ``value`` is an element that
        no iteration changes, perhaps plus a constant. Return None for any other value, and if the initial
        value of the element is unknown.

        Args:
          caller: the computation that contains the loop.
          loop: the ``while`` instruction.
          body: the computation that the loop repeats.
          value: a value from the loop's condition.
        """
        if not isinstance(value, Element) or value.parameter != 0 or self.step(body, value.member) != 0:
            return None
        start = self.initial(caller, loop, value.member)
        return None if start is None else Constant(start.value + value.offset)

    def initial(self, caller: Computation, loop: Instruction, index: int, depth: int = 0) -> Constant | None:
        """Return the value of one element of a loop's tuple when the loop is entered. Return None if the
        value is not a constant or is unknown.

        Args:
          caller: the computation that contains the loop.
          loop: the ``while`` instruction.
          index: the number of the element; -1 if the loop carries a single value instead of a tuple.
          depth: the number of outer loops that were followed to get here.
        """
        if depth > MAX_DEPTH:
            return None
        value = self.value(caller, caller.operand(loop, 0), index)
        if isinstance(value, Constant):
            return value
        # The value is an element of the outer loop's tuple, which the outer body does not change.
        outer = self._graph.callers.get(caller.name, ())
        if isinstance(value, Element) and len(outer) == 1 and outer[0].key == "body":
            around = outer[0]
            if value.parameter == 0 and self.step(caller, value.member) == 0:
                found = self.initial(around.caller, around.instruction, value.member, depth + 1)
                return None if found is None else Constant(found.value + value.offset)
        return None


def _hands_on(opcode: str) -> bool:
    """Return whether an instruction with this opcode passes a value on, as a part of an asynchronous
    operation: ``copy-start``, ``*-done`` or ``*-update``."""
    return opcode.endswith(("-done", "-update")) or opcode == "copy-start"


def _sum(left: Value, right: Value, sign: int) -> Value:
    """Return ``left + sign * right``; None if this is neither a constant nor an element plus a constant."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(left.value + sign * right.value)
    if isinstance(left, Constant) and sign == 1:
        left, right = right, left
    if isinstance(left, Element) and isinstance(right, Constant):
        return left._replace(offset=left.offset + sign * right.value)
    return None
