"""Find the chains of TPU fusions that execute one asynchronous collective.

A fusion whose root is a custom call ``AsyncCollectiveStart`` starts the collective, fusions
``async_collective_fusion.N`` compute while the collective runs, and a fusion with ``AsyncCollectiveDone``
ends the collective. The text of each of these fusions repeats the collective, with
``async_collective_fusion_config`` in its backend_config and the chain's number in
``frontend_attributes={chain_id="3"}``. The result of the start passes through all fusions of the chain, also
through loops between start and done. So only the collective in the start is counted. Seen in modules of
libtpu 0.0.42 and 0.0.50 (JAX 0.10.2, 0.12.0.1), where each chain has one start and one done.
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
    """The chains of fusions of one module. On TPU the fusions of a chain together execute one asynchronous
    collective: each contains an instruction of this collective, and only one of them counts.

    In the methods, ``body`` is the computation that contains the instruction ``collective``. Except in
    ``end_of``, all fusions without a chain number count as one chain.

    Args:
      graph: the computations of the module and their calls.
      collectives: (computation, instruction) of each collective instruction in the module.
    """

    def __init__(self, graph: CallGraph, collectives: Iterable[Place]) -> None:
        self._graph = graph
        self._roles: dict[tuple[str, str], str] = {}
        self._parts: dict[tuple[str | None, str], list[Place]] = {}  # by (number of the chain, role)
        for body, collective in collectives:
            role = _role(body, collective) if body.name in graph.fused else None
            if role is not None:
                self._roles[body.name, collective.name] = role
                self._parts.setdefault((_number(collective), role), []).append((body, collective))

    def continues(self, body: Computation, collective: Instruction) -> bool:
        """Return whether ``collective`` must not be counted, because it is a copy: another fusion of its
        chain starts the collective."""
        role = self._roles.get((body.name, collective.name))
        return role in (MIDDLE, DONE) and (_number(collective), START) in self._parts

    def start_of(self, body: Computation, collective: Instruction) -> Place | None:
        """Return the ``fusion`` instruction that contains ``collective``, if this fusion starts a chain:
        (computation that contains the fusion, fusion). Return None if it starts none."""
        return self._fusion(body) if self._roles.get((body.name, collective.name)) == START else None

    def computes(self, collective: Instruction) -> bool:
        """Return whether a fusion of the collective's chain computes during the transfer, between the fusion
        that starts the collective and the fusion that ends it."""
        return (_number(collective), MIDDLE) in self._parts

    def end_of(self, collective: Instruction) -> Place | None:
        """Return the ``fusion`` instruction that ends the chain of ``collective``: (computation that contains
        the fusion, fusion). Return None if the text does not number the fusions of the chain, or has no such
        fusion."""
        number = _number(collective)
        parts = self._parts.get((number, DONE), ()) if number is not None else ()
        places = [self._fusion(body) for body, _ in parts]
        return places[0] if places else None

    def _fusion(self, body: Computation) -> Place | None:
        """Return (computation, instruction) of the first instruction that calls ``body``, the computation of
        a fusion. Return None if no instruction calls ``body``."""
        calls = self._graph.callers.get(body.name, ())
        return (calls[0].caller, calls[0].instruction) if calls else None


def _role(body: Computation, collective: Instruction) -> str | None:
    """Return what the fusion with the computation ``body`` does in the chain of ``collective``: START, MIDDLE
    (it computes during the transfer) or DONE. Return None if the collective belongs to no chain."""
    for instruction in body.readers(collective.name):
        if instruction.opcode == "custom-call":
            target = (attribute(instruction.tail, "custom_call_target") or "").rstrip('"')
            if target.startswith(_TARGET):
                return START if target.endswith("Start") else DONE if target.endswith("Done") else MIDDLE
    return MIDDLE if "async_collective_fusion_config" in collective.tail else None


def _number(collective: Instruction) -> str | None:
    """Return the number of the collective's chain, ``"3"`` for ``frontend_attributes={chain_id="3"}``. Return
    None if the text has none."""
    if "chain_id=" not in collective.tail:
        return None
    value = attribute(collective.tail, "frontend_attributes")
    return fields(value[1:-1]).get("chain_id") if value else None
