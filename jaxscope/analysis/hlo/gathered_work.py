"""Find matrix products that all devices compute alike, from arrays that ``jax.lax.all_gather`` collects.

The instructions are followed from the parameters of the program to its results. Each value has one of three
states: it is the same on all devices (SAME), the same because an all-gather has collected it (GATHERED), or
it may differ (DIFFERS).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec

from jaxscope.analysis.hlo import cost, groups
from jaxscope.analysis.hlo.calls import CALLS, CallGraph
from jaxscope.analysis.hlo.lexing import attribute, instruction_attributes, number, operands
from jaxscope.analysis.hlo.module import Computation, Instruction
from jaxscope.schema.collectives import KINDS

SAME, GATHERED, DIFFERS = range(3)  # joined with max()
_CHANGES = frozenset({"infeed", "partition-id", "replica-id", "rng", "rng-get-and-update-state"})
# Collectives whose result is the same on all devices of a group; that of all others differs
_ALIKE = frozenset({"all-reduce", "all-gather", "collective-broadcast", "send"})
MOST_GATHERS = 32  # among which the responsible one is looked for
MOST_ROUNDS = 4  # through the body of a loop; each round only raises states

_State: TypeAlias = "int | tuple[_State, ...]"  # a tuple for a value that is a tuple


class GatheredWork(msgspec.Struct, frozen=True):
    """The matrix products and convolutions that all devices compute alike from gathered arrays.

    Attributes:
      flops: their flops in one call, on one device.
      all_flops: the flops of all products and convolutions, on one device.
      gather: (computation, name) of the all-gather from which most of these flops come; None: unknown,
        because the user's program asks for more than MOST_GATHERS (32).
    """

    flops: int
    all_flops: int
    gather: tuple[str, str] | None = None


def find(
    graph: CallGraph,
    executions: Mapping[str, int | None],
    devices: int,
    gathers: Collection[tuple[str, str]],
    whole: Collection[int] = (),
) -> GatheredWork | None:
    """Return the matrix products that all devices compute alike because an all-gather has collected their
    operands. Return None if there are no such products, if the flops or the executions of any product of the
    program are unknown, or if the text has no ENTRY or computations that call each other in a circle.

    Args:
      graph: the calls of the module; created with ``also=cost.WORK``.
      executions: name of a computation -> how often it runs in one call; None: unknown.
      devices: number of devices; the program runs once on each, as a partition.
      gathers: (computation, name) of the all-gathers that the user's program asks for.
      whole: positions of parameters that each device has as a whole, although the HLO does not say so.
    """
    entry = graph.module.entry
    if entry is None or graph.circular or not gathers:
        return None
    flops = dict[tuple[str, str], int]()
    for computation, instruction in graph.all(*cost.WORK):
        once, times = cost.flops(graph, computation, instruction), executions.get(computation.name)
        if once is None or times is None:
            return None
        flops[computation.name, instruction.name] = once * times
    given = [_parameter(p, whole) for p in sorted(entry.parameters(), key=_position)]

    def gathered(only: Collection[tuple[str, str]]) -> int:
        """Return the flops of the products with gathered operands, if only the all-gathers ``only`` count."""
        flow = _Flow(graph, devices, only)
        flow.run(entry, given)
        return sum(flops[at] for at, state in flow.work.items() if state == GATHERED and at in flops)

    found = gathered(gathers)
    if not found:
        return None
    first = max(sorted(gathers), key=lambda at: gathered({at})) if len(gathers) <= MOST_GATHERS else None
    return GatheredWork(found, sum(flops.values()), first)


def _position(parameter: Instruction) -> int:
    """Return the number of a parameter: 1 for ``parameter(1)``; 0 if it cannot be read."""
    return number(next(iter(operands(parameter.tail)), None)) or 0


def _parameter(parameter: Instruction, whole: Collection[int]) -> int:
    """Return the state of a parameter of the program: SAME if it is replicated, else DIFFERS. ``whole`` has
    the positions of parameters that count as replicated if the text has no sharding for them."""
    stated = instruction_attributes(parameter.tail).get("sharding")
    return SAME if stated == "{replicated}" or (stated is None and _position(parameter) in whole) else DIFFERS


class _Flow:
    """Computes the state of each value of a program: SAME, GATHERED or DIFFERS (see the module). The results
    of the all-gathers ``gathers`` are GATHERED.

    Attributes:
      work: (computation, instruction) of a product or convolution -> the state of its operands.
    """

    def __init__(self, graph: CallGraph, devices: int, gathers: Collection[tuple[str, str]]) -> None:
        self.work: dict[tuple[str, str], int] = {}
        self._graph, self._devices, self._gathers = graph, devices, gathers
        self._results: dict[tuple[str, tuple[_State, ...]], _State] = {}

    def run(self, computation: Computation, parameter_states: Sequence[_State]) -> _State:
        """Return the state of the result of ``computation``, whose parameters have
        ``parameter_states``."""
        key = computation.name, tuple(parameter_states)
        if key not in self._results:
            values: dict[str, _State] = {}
            for i in computation.instructions:
                values[i.name] = self._state(computation, i, values, parameter_states)
            root = computation.root
            self._results[key] = values[root.name] if root is not None else DIFFERS
        return self._results[key]

    def _state(
        self,
        computation: Computation,
        i: Instruction,
        values: Mapping[str, _State],
        parameter_states: Sequence[_State],
    ) -> _State:
        """Return the state of the result of the instruction ``i`` in ``computation``.

        Args:
          values: name -> state, for the instructions in front of ``i``.
          parameter_states: the states of the parameters of ``computation``.
        """
        if i.opcode == "parameter":
            n = _position(i)
            return parameter_states[n] if n < len(parameter_states) else DIFFERS
        if i.opcode in ("constant", "iota"):
            return SAME
        read = [values.get(name, DIFFERS) for name in operands(i.tail)]
        if i.opcode == "tuple":
            return tuple(read)
        if i.opcode == "get-tuple-element":
            n, whole = number(attribute(i.tail, "index")) or 0, read[0] if read else DIFFERS
            return whole[n] if isinstance(whole, tuple) and n < len(whole) else _joined(whole)
        if i.opcode.endswith("-done") and read and isinstance(read[0], tuple):
            return read[0][min(1, len(read[0]) - 1)]
        if i.operation == "while":
            return self._loop(computation, i, read[0] if read else DIFFERS)
        called = [c.callee for c in self._graph.of(computation, i)]
        if i.operation == "conditional" and called:
            chosen = _joined(read[0]) if read else DIFFERS  # DIFFERS: each device may run another branch
            operands_of = [_raised(state, chosen) for state in read[1:]]
            branches = [self.run(c, [state]) for c, state in zip(called, operands_of, strict=False)]
            return _raised(_either(branches), chosen)
        if i.operation in CALLS and called:
            result = self.run(called[0], read)
            return (tuple(read), result) if i.opcode.endswith("-start") else result
        state = self._of_operation(computation, i, _joined(tuple(read)))
        return (tuple(read), state) if i.opcode.endswith("-start") else state

    def _of_operation(self, computation: Computation, i: Instruction, read: int) -> int:
        """Return the state of the result of an instruction that calls nothing. ``read`` is the joined state
        of its operands. For a product, this state is stored in ``work``."""
        if i.opcode in cost.WORK:
            at = computation.name, i.name
            self.work[at] = max(self.work.get(at, SAME), read)
        if i.operation in _CHANGES or (i.operation in KINDS and i.operation not in _ALIKE):
            return DIFFERS
        if i.operation in _ALIKE and self._among_all(i):
            if (computation.name, i.name) in self._gathers:
                return GATHERED
            return SAME if read == DIFFERS else read
        return read

    def _loop(self, computation: Computation, i: Instruction, state: _State) -> _State:
        """Return the state of what the loop ``i`` carries, at its end. ``state`` is the state at the
        beginning. If it still changes after MOST_ROUNDS (4) rounds through the body, the result is
        DIFFERS."""
        called = {c.key: c.callee for c in self._graph.of(computation, i)}
        if called.keys() < {"body", "condition"}:
            return DIFFERS
        for _ in range(MOST_ROUNDS):
            lasts = _joined(self.run(called["condition"], [state]))
            after = _raised(_either([state, self.run(called["body"], [state])]), lasts)
            if after == state:
                return state
            state = after
        return _raised(state, DIFFERS)

    def _among_all(self, i: Instruction) -> bool:
        """Return whether the groups of the collective ``i`` are one group of all devices."""
        text = attribute(i.tail, "replica_groups")
        if text == "{}":
            return True
        found = groups.parse(text) if text else None
        return found is not None and len(found.members) == 1 and len(found.members[0]) == self._devices


def _joined(state: _State) -> int:
    """Return one state for a value: for a tuple, the largest state of its members (SAME < GATHERED <
    DIFFERS)."""
    return max(map(_joined, state), default=SAME) if isinstance(state, tuple) else state


def _raised(state: _State, least: int) -> _State:
    """Return ``state``, with DIFFERS everywhere if ``least`` is DIFFERS."""
    if least != DIFFERS:
        return state
    return tuple(_raised(part, least) for part in state) if isinstance(state, tuple) else DIFFERS


def _either(states: Sequence[_State]) -> _State:
    """Return the state of a value that has one of ``states``."""
    first = states[0] if states else DIFFERS
    if all(isinstance(s, tuple) and isinstance(first, tuple) and len(s) == len(first) for s in states):
        parts = [s for s in states if isinstance(s, tuple)]
        return tuple(_either(column) for column in zip(*parts, strict=True))
    return max(map(_joined, states), default=DIFFERS)
