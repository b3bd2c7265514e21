"""Chains of TPU fusions that carry one asynchronous collective.

Seen in v5e modules of JAX 0.10: a fusion whose root is the custom call ``AsyncCollectiveStart`` of
the collective; fusions ``async_collective_fusion.N`` that compute and, beside that, hold the
collective again, with the start's results as parameters and among their results; and one with
``AsyncCollectiveDone``. The collective inside is printed in each of them, with the same groups and
``async_collective_fusion_config`` in its backend_config.
"""

from __future__ import annotations

from jaxscope.analysis.hlo.calls import Call, CallGraph
from jaxscope.analysis.hlo.lexing import attribute, number, operand_text, operands
from jaxscope.analysis.hlo.module import Computation, Instruction

_TARGET = "AsyncCollective"
_PASSES = frozenset({"bitcast", "copy", "reshape"})
MAX_LENGTH = 4_000


class Chains:
    """The chains of one module, found by following the data."""

    def __init__(self, graph: CallGraph) -> None:
        self._graph = graph
        # Fusion -> the done at the end of its chain, by (computation, name) of the start.
        self._ends: dict[tuple[str, str], Instruction] = {}
        self._starts: dict[tuple[str, str], tuple[Computation, Instruction] | None] = {}

    def continues(self, body: Computation, collective: Instruction) -> bool:
        """Is this a repetition of a collective that an earlier fusion started?"""
        if body.name not in self._graph.fused or _role(body, collective) in ("", "start"):
            return False
        return self._origin(body, collective) is not None

    def start_of(self, body: Computation, collective: Instruction) -> tuple[Computation, Instruction] | None:
        """The fusion that starts the chain, and where it stands."""
        if body.name not in self._graph.fused or _role(body, collective) != "start":
            return None
        for call in self._graph.callers.get(body.name, ()):
            return call.caller, call.instruction
        return None

    def ends(self, where: Computation, start: Instruction) -> Instruction | None:
        """The fusion that ends the chain which ``start`` begins; None before ``continues`` saw it."""
        return self._ends.get((where.name, start.name))

    def _origin(self, body: Computation, collective: Instruction) -> tuple[Computation, Instruction] | None:
        key = (body.name, collective.name)
        if key not in self._starts:
            self._starts[key] = found = self._follow(body, collective)
            if found is not None and _role(body, collective) == "done":
                call = self._fusion(body)
                if call is not None:
                    self._ends.setdefault((found[0].name, found[1].name), call.instruction)
        return self._starts[key]

    def _fusion(self, body: Computation) -> Call | None:
        callers = self._graph.callers.get(body.name, ())
        return callers[0] if callers else None

    def _follow(self, body: Computation, collective: Instruction) -> tuple[Computation, Instruction] | None:
        """Back from the collective's operand to the fusion that started it."""
        call = self._fusion(body)
        wanted = _parameter_of(body, _first(body, collective))
        for _ in range(MAX_LENGTH):
            if call is None or wanted is None:
                return None
            where = call.caller
            inputs = operands(call.instruction.tail)
            source = where.find(inputs[wanted]) if wanted < len(inputs) else None
            while source is not None and source.opcode in _PASSES:
                source = _first(where, source)
            if source is None or source.opcode != "get-tuple-element":
                return None
            index = number(attribute(source.tail, "index"))
            before = _first(where, source)
            calls = self._graph.of(where, before) if before is not None else []
            if before is None or before.opcode != "fusion" or not calls or index is None:
                return None
            if _starts(calls[0].callee):
                return where, before
            call = calls[0]
            wanted = _parameter_of(call.callee, _member(call.callee, index))
        return None


def _role(body: Computation, collective: Instruction) -> str:
    """``start``, ``done``, ``middle``, or ``""`` for a collective that stands for itself."""
    for instruction in body.readers(collective.name):
        if instruction.opcode == "custom-call":
            target = (attribute(instruction.tail, "custom_call_target") or "").strip('"')
            if target.startswith(_TARGET):
                return (
                    "start" if target.endswith("Start") else "done" if target.endswith("Done") else "middle"
                )
    return "middle" if "async_collective_fusion_config" in collective.tail else ""


def _starts(body: Computation) -> bool:
    root = body.root
    return root is not None and root.opcode == "custom-call" and f'"{_TARGET}Start"' in root.tail


def _first(where: Computation, instruction: Instruction | None) -> Instruction | None:
    if instruction is None:
        return None
    inputs = operands(instruction.tail)
    return where.find(inputs[0]) if inputs else None


def _member(body: Computation, index: int) -> Instruction | None:
    """Member ``index`` of the tuple a fusion returns; of the collective itself, what it reads."""
    root = body.root
    if root is None or root.opcode != "tuple":
        return None
    inputs = operands(root.tail)
    found = body.find(inputs[index]) if 0 <= index < len(inputs) else None
    if found is not None and "async_collective_fusion_config" in found.tail:
        return _first(body, found)
    return found


def _parameter_of(body: Computation, instruction: Instruction | None) -> int | None:
    while instruction is not None and instruction.opcode in _PASSES:
        instruction = _first(body, instruction)
    if instruction is None or instruction.opcode != "parameter":
        return None
    return number(operand_text(instruction.tail).strip())
