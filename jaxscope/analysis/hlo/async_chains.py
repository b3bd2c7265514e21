"""Find chains of TPU fusions that execute one asynchronous collective.

A fusion whose root is the custom call ``AsyncCollectiveStart`` of the collective starts it; fusions
``async_collective_fusion.N`` compute while it runs; one with ``AsyncCollectiveDone`` ends it. Each of them
prints the collective again, with ``async_collective_fusion_config`` in its backend_config and the chain's
number in ``frontend_attributes={chain_id="3"}``. What the start returns passes through all of them, also
through loops that stand between start and done, so that only the start counts. Seen in modules of libtpu
0.0.42 and 0.0.50 (JAX 0.10.2, 0.12.0.1), where each chain has one start and one done.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.lexing import attribute, fields
from jaxscope.analysis.hlo.module import Computation, Instruction

_TARGET = '"AsyncCollective'
START, MIDDLE, DONE = "start", "middle", "done"
Place = tuple[Computation, Instruction]


class Chains:
    """The chains of one module.

    Args:
      found: its collectives, with the computations they stand in.
    """

    def __init__(self, graph: CallGraph, found: Iterable[Place]) -> None:
        self._graph = graph
        self._roles: dict[tuple[str, str], str] = {}
        self._parts: dict[tuple[str | None, str], list[Place]] = {}  # by number and role
        for body, collective in found:
            role = _role(body, collective) if body.name in graph.fused else None
            if role is not None:
                self._roles[body.name, collective.name] = role
                self._parts.setdefault((_number(collective), role), []).append((body, collective))

    def continues(self, body: Computation, collective: Instruction) -> bool:
        """Return whether this instruction repeats a collective that another fusion starts."""
        role = self._roles.get((body.name, collective.name))
        return role in (MIDDLE, DONE) and (_number(collective), START) in self._parts

    def start_of(self, body: Computation, collective: Instruction) -> Place | None:
        """Return the fusion that starts the chain, and its position."""
        return self._fusion(body) if self._roles.get((body.name, collective.name)) == START else None

    def computes(self, collective: Instruction) -> bool:
        """Return whether a fusion of the chain that this collective starts also computes."""
        return (_number(collective), MIDDLE) in self._parts

    def end_of(self, collective: Instruction) -> Place | None:
        """Return the fusion that ends the chain, and its position; None if the chains have no numbers."""
        number = _number(collective)
        parts = self._parts.get((number, DONE), ()) if number is not None else ()
        places = [self._fusion(body) for body, _ in parts]
        return places[0] if places else None

    def _fusion(self, body: Computation) -> Place | None:
        calls = self._graph.callers.get(body.name, ())
        return (calls[0].caller, calls[0].instruction) if calls else None


def _role(body: Computation, collective: Instruction) -> str | None:
    """Return the role of a collective in a chain (START, MIDDLE or DONE); None outside of chains."""
    for instruction in body.readers(collective.name):
        if instruction.opcode == "custom-call":
            target = (attribute(instruction.tail, "custom_call_target") or "").rstrip('"')
            if target.startswith(_TARGET):
                return START if target.endswith("Start") else DONE if target.endswith("Done") else MIDDLE
    return MIDDLE if "async_collective_fusion_config" in collective.tail else None


def _number(collective: Instruction) -> str | None:
    if "chain_id=" not in collective.tail:
        return None
    value = attribute(collective.tail, "frontend_attributes")
    return fields(value[1:-1]).get("chain_id") if value else None
