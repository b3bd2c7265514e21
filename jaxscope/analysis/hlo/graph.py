"""The instructions of a compiled program as a graph: what each reads, and which fusion or loop it is in."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jaxscope.analysis.hlo import cost, shapes
from jaxscope.analysis.hlo.attribution import Attribution, op_name
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.lexing import instruction_attributes, operands
from jaxscope.analysis.hlo.module import Computation, Instruction
from jaxscope.analysis.hlo.reader import read
from jaxscope.schema.keys import Frame

PASSES_ON = ("fusion", "call")  # operand i becomes parameter i of the computation that they call
MAX_NODES = 200_000


class Node(msgspec.Struct, frozen=True):
    """One instruction.

    Attributes:
      id: unique in the program: the computation's name and its own.
      group: the fusions, loops and calls around it, by name, the outermost first.
      bytes: bytes of its result, on one device; None: unknown.
      flops: the flops of one execution, on one device; None: unknown.
      line: the user's.
      operation: JAX's name for where it comes from: ``jit(step)/dot_general``.
    """

    id: str
    name: str
    opcode: str
    shape: str
    group: tuple[str, ...]
    bytes: int | None
    flops: int | None
    line: Frame | None
    sharding: str | None
    operation: str | None


class Edge(msgspec.Struct, frozen=True):
    """``target`` reads ``source`` as its operand number ``position``; of the result of a computation that it
    calls, -1."""

    source: str
    target: str
    position: int


class Graph(msgspec.Struct, frozen=True):
    """The graph of one program. ``cut``: it has more than MAX_NODES instructions; the rest is left out."""

    nodes: list[Node]
    edges: list[Edge]
    cut: bool = False


def of(text: str, user_files: Iterable[str] = ()) -> Graph:
    """Read the graph of a compiled text. What cannot be read is left out."""
    module = read(text, user_files)
    calls = CallGraph(module, tuple({i.opcode for c in module.computations.values() for i in c.instructions}))
    attribution = Attribution(module, calls)
    groups = _groups(module.computations, calls)
    nodes: list[Node] = []
    edges: list[Edge] = []
    for computation in module.computations.values():
        if computation.name not in groups:
            continue  # nothing calls it
        if len(nodes) + len(computation.instructions) > MAX_NODES:
            return Graph(nodes, edges, cut=True)
        for instruction in computation.instructions:
            nodes.append(_node(computation, instruction, groups[computation.name], calls, attribution))
            edges += _edges(computation, instruction, calls)
    known = {node.id for node in nodes}
    return Graph(nodes, [e for e in edges if e.source in known and e.target in known])


def _id(where: Computation, name: str) -> str:
    return f"{where.name}/{name}"


def _groups(computations: dict[str, Computation], calls: CallGraph) -> dict[str, tuple[str, ...]]:
    """Return the group of each computation that runs; of several calls of one, the first counts."""
    found: dict[str, tuple[str, ...]] = {c.name: () for c in computations.values() if c.entry}
    waiting = [computations[name] for name in found]
    while waiting:
        caller = waiting.pop(0)
        for instruction in caller.instructions:
            for call in calls.of(caller, instruction):
                if call.callee.name not in found:
                    found[call.callee.name] = (*found[caller.name], instruction.name)
                    waiting.append(call.callee)
    return found


def _node(
    where: Computation, i: Instruction, group: tuple[str, ...], calls: CallGraph, attribution: Attribution
) -> Node:
    return Node(
        _id(where, i.name),
        i.name,
        i.opcode,
        i.shape,
        group,
        shapes.result_bytes(i.opcode, i.shape),
        cost.flops(calls, where, i),
        attribution.line(where, i),
        instruction_attributes(i.tail).get("sharding"),
        op_name(i),
    )


def _edges(where: Computation, i: Instruction, calls: CallGraph) -> list[Edge]:
    if i.opcode in ("parameter", "constant"):
        return []
    found = [Edge(_id(where, name), _id(where, i.name), n) for n, name in enumerate(operands(i.tail))]
    called = calls.of(where, i)
    if i.operation in PASSES_ON and len(called) == 1:
        body = called[0].callee
        taken = {operands(p.tail)[0]: p for p in body.parameters() if operands(p.tail)}
        found = [
            msgspec.structs.replace(e, target=_id(body, taken[str(e.position)].name), position=0)
            if str(e.position) in taken
            else e
            for e in found
        ]
    roots = [(c.callee, c.callee.root) for c in called]
    return found + [Edge(_id(c, root.name), _id(where, i.name), -1) for c, root in roots if root is not None]
