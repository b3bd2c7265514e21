"""Find which instruction calls which computation, and how often each computation runs in one call of the
program.

These attributes name a called computation: ``calls=`` (fusion, call, async), ``body=`` and ``condition=``
(while), ``branch_computations=`` or ``true_computation=`` and ``false_computation=`` (conditional),
``to_apply=`` of ``call``. The ``to_apply=`` of other operations (reduce, all-reduce, scatter, sort, map)
names a function of single elements, which does not count as a call. The calling instruction may also be the
start of an asynchronous pair (``fusion-start``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from operator import itemgetter

import msgspec

from jaxscope.analysis.hlo.lexing import attribute, split
from jaxscope.analysis.hlo.module import Computation, Instruction, Module

# Opcode -> the attributes that name the computations that it calls.
_FLOW = {
    "fusion": ("calls",),
    "while": ("body", "condition"),
    "conditional": ("branch_computations", "true_computation", "false_computation"),
    "call": ("to_apply", "calls"),
    "async": ("calls",),
}
_FLOW |= {f"{opcode}-start": keys for opcode, keys in _FLOW.items()}
FUSIONS = ("fusion", "fusion-start")
CALLS = frozenset({"fusion", "call", "async"})  # operations that run a computation once
Trips = Mapping[tuple[str, str], int | None]
# No real program has a computation that runs more often.
MAX_EXECUTIONS = 1 << 62


# The usual position of the name of a fusion's body.
_FUSION = re.compile(r"\), kind=k[A-Za-z]++, calls=%?([^\s,(){}%\"]++)(?:,|$)")


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call of a computation by an instruction.

    Attributes:
      caller: the computation that contains ``instruction``.
      instruction: the instruction that calls.
      key: the attribute of the instruction that names the called computation: ``calls``, ``body``,
        ``condition``, ...
      callee: the called computation.
    """

    caller: Computation
    instruction: Instruction
    key: str
    callee: Computation


def names(value: str | None) -> list[str]:
    """Return the names of computations in the value of an attribute: ``%a`` -> ``["a"]``, ``{%a, %b}`` ->
    ``["a", "b"]``, None -> ``[]``."""
    if not value:
        return []
    inner = value[1:-1] if value[0] == "{" and value[-1] == "}" else value
    return [part.lstrip("%") for part in split(inner) if part]


class CallGraph:
    """The calls between the computations of one module, and the computations that run.

    Args:
      also: further opcodes whose instructions the method ``all`` can return.

    Attributes:
      calls: name of a computation -> the calls that its instructions make, in the order of the text.
      callers: name of a computation -> the calls by which other computations call it.
      reachable: names of the computations that run: ENTRY and all that ENTRY calls, directly or not; all
        computations if the text is truncated and has no ENTRY.
      in_call_order: names of the reachable computations, callers before callees, except those in
        ``circular``. Empty if the text has no ENTRY.
      circular: names of the reachable computations that are in a cycle of calls or are called from one. Empty
        if the text has no ENTRY.
      fused: names of the reachable computations that are the body of a fusion, or are called from inside one.
    """

    def __init__(self, module: Module, also: Collection[str] = ()) -> None:
        self.module = module
        self.calls: dict[str, list[Call]] = {}
        self.callers: dict[str, list[Call]] = {}
        self._by_instruction: dict[tuple[str, str], list[Call]] = {}
        # The only pass over all instructions. It keeps those that call, and those with the opcodes ``also``.
        wanted = frozenset((*_FLOW, *also))
        self._kept = [
            (computation, instruction)
            for computation in module.computations.values()
            for instruction in computation.instructions
            if instruction.opcode in wanted
        ]
        for computation, instruction in self._kept:
            keys = _FLOW.get(instruction.opcode)
            if keys is not None:
                self._add(computation, instruction, keys)
        self._running: dict[str, list[tuple[int, Computation, Instruction]]] | None = None
        self.reachable = self._reach()
        self.fused = self._inside_fusions()
        self.in_call_order = self._callers_first()
        self.circular = self.reachable.difference(self.in_call_order) if module.entry is not None else set()

    def _add(self, caller: Computation, instruction: Instruction, keys: tuple[str, ...]) -> None:
        """Store the calls that ``instruction`` in ``caller`` makes with the attributes ``keys``. Names of
        computations that the text does not have are ignored."""
        tail = instruction.tail
        found = _FUSION.match(tail, tail.find(")")) if instruction.opcode in FUSIONS else None
        for key in keys:
            for name in (found[1],) if found else names(attribute(tail, key)):
                callee = self.module.computations.get(name)
                if callee is not None:
                    call = Call(caller, instruction, key, callee)
                    self.calls.setdefault(caller.name, []).append(call)
                    self.callers.setdefault(name, []).append(call)
                    self._by_instruction.setdefault((caller.name, instruction.name), []).append(call)

    def all(self, *opcodes: str) -> list[tuple[Computation, Instruction]]:
        """Return (computation, instruction) of all instructions with these opcodes in computations that run,
        in the order of the text. Only opcodes that call computations (``while``, ``fusion``, ...) and those
        in the argument ``also`` of the class are found."""
        if self._running is None:
            self._running = {}
            for place, (computation, instruction) in enumerate(self._kept):
                if computation.name in self.reachable:
                    self._running.setdefault(instruction.opcode, []).append((place, computation, instruction))
        found = [row for opcode in opcodes for row in self._running.get(opcode, ())]
        if len(opcodes) > 1:
            found.sort(key=itemgetter(0))
        return [(computation, instruction) for _, computation, instruction in found]

    def of(self, caller: Computation, instruction: Instruction) -> list[Call]:
        """Return the calls that an instruction in the computation ``caller`` makes: two for a ``while``
        (body, then condition), one for each branch of a ``conditional``; empty if it calls nothing."""
        return self._by_instruction.get((caller.name, instruction.name), [])

    def _reach(self) -> set[str]:
        """Return the value of the attribute ``reachable``."""
        entry = self.module.entry
        if entry is None:
            return set(self.module.computations)
        seen, waiting = {entry.name}, [entry.name]
        while waiting:
            for call in self.calls.get(waiting.pop(), ()):
                if call.callee.name not in seen:
                    seen.add(call.callee.name)
                    waiting.append(call.callee.name)
        return seen

    def _inside_fusions(self) -> set[str]:
        """Return the value of the attribute ``fused``."""
        seen: set[str] = set()
        waiting = [
            call.callee.name
            for name in self.reachable
            for call in self.calls.get(name, ())
            if call.instruction.opcode in FUSIONS
        ]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [call.callee.name for call in self.calls.get(name, ())]
        return seen

    def _callers_first(self) -> list[str]:
        """Return the value of the attribute ``in_call_order``."""
        entry = self.module.entry
        if entry is None:
            return []
        missing = dict.fromkeys(self.reachable, 0)
        for name in self.reachable:
            for call in self.calls.get(name, ()):
                missing[call.callee.name] += 1
        found: list[str] = []
        ready = [entry.name] if not missing[entry.name] else []
        while ready:  # a computation in a circle never gets ready
            name = ready.pop()
            found.append(name)
            for call in self.calls.get(name, ()):
                missing[call.callee.name] -= 1
                if not missing[call.callee.name]:
                    ready.append(call.callee.name)
        return found

    def top_level(self) -> list[Computation]:
        """Return the computations that run, except those inside fusions, in the order of the text."""
        return [c for n, c in self.module.computations.items() if n in self.reachable and n not in self.fused]

    def executions(self, trips: Trips) -> dict[str, int | None]:
        """Return how often each reachable computation runs in one call of the program: name of the
        computation -> number. The number is None if it is unknown or more than MAX_EXECUTIONS (2**62).

        The condition of a loop runs once more than its body. A branch of a conditional is counted as if it
        ran each time.

        Args:
          trips: (name of the computation, name of the loop in it) -> trip count; None: unknown.
        """
        entry = self.module.entry
        result: dict[str, int | None] = dict.fromkeys(self.reachable)
        if entry is None:
            return result
        sums: dict[str, int | None] = {**dict.fromkeys(self.reachable, 0), entry.name: 1}
        for name in self.in_call_order:
            own = result[name] = sums[name]
            for call in self.calls.get(name, ()):
                total, each = sums[call.callee.name], _times(call, own, trips)
                reached = None if total is None or each is None else total + each
                sums[call.callee.name] = None if reached is None or reached > MAX_EXECUTIONS else reached
        return result


def _times(call: Call, own: int | None, trips: Trips) -> int | None:
    """Return how often ``call`` runs the called computation in one call of the program; None: unknown.
    ``own`` is how often the calling computation runs. ``trips`` are the trip counts of the loops."""
    if own is None or call.instruction.operation != "while":
        return own
    trip = trips.get((call.caller.name, call.instruction.name))
    if trip is None:
        return None
    return own * (trip + 1 if call.key == "condition" else trip)
