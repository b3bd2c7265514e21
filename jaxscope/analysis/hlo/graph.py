"""Read a compiled program as a graph: its instructions, their operands, and the fusions and loops that
contain the instructions."""

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
    """One instruction of a compiled program.

    Attributes:
      id: unique in the program: ``computation/instruction``.
      shape: the shape of the result, as HLO writes it.
      group: the names of the fusions, loops, conditionals and calls around the instruction, the outermost
        first.
      bytes: bytes of the result on one device; None: unknown.
      flops: the flops of one execution on one device; None: unknown.
      line: the Python line, if possible the user's; None: unknown.
      sharding: the sharding as XLA writes it; None: the HLO has none.
      operation: JAX's name of the operation: ``jit(step)/dot_general``; None: the HLO has none.
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
    """One operand of an instruction, as an edge of the graph.

    Attributes:
      source: the id of the instruction that computes the operand.
      target: the id of the instruction that reads the operand. If this is the first fusion or call of a
        computation, ``target`` is the parameter in the computation.
      position: the number of the operand, from 0; 0 if ``target`` is a parameter. -1 if ``source`` is the
        result of a computation that ``target`` calls.
    """

    source: str
    target: str
    position: int


class Graph(msgspec.Struct, frozen=True):
    """The graph of one program: the instructions that run, and their operands.

    Attributes:
      cut: whether more than MAX_NODES (200,000) instructions run, so that some computations are missing.
    """

    nodes: list[Node]
    edges: list[Edge]
    cut: bool = False


def of(text: str, user_files: Iterable[str] = ()) -> Graph:
    """Return the graph of a compiled program from its HLO. Lines that cannot be read are ignored. The graph
    is empty if the HLO has no ENTRY.

    Args:
      text: the HLO.
      user_files: files that are the user's own although they are in a library's directory.
    """
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
            return _complete(nodes, edges, cut=True)
        for instruction in computation.instructions:
            nodes.append(_node(computation, instruction, groups[computation.name], calls, attribution))
            edges += _edges(computation, instruction, calls, groups)
    return _complete(nodes, edges, cut=False)


def _complete(nodes: list[Node], edges: list[Edge], *, cut: bool) -> Graph:
    """Return the graph of ``nodes`` and ``edges``, without the edges of which a node is missing."""
    known = {node.id for node in nodes}
    return Graph(nodes, [e for e in edges if e.source in known and e.target in known], cut)


def _id(computation: Computation, name: str) -> str:
    """Return the id of the instruction ``name``: ``computation/name``."""
    return f"{computation.name}/{name}"


def _groups(computations: dict[str, Computation], calls: CallGraph) -> dict[str, tuple[str, ...]]:
    """Return computation name -> names of the fusions, loops, conditionals and calls around it, the outermost
    first, for each computation that runs. If a computation is called several times, only the first call
    counts."""
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
    computation: Computation,
    i: Instruction,
    group: tuple[str, ...],
    calls: CallGraph,
    attribution: Attribution,
) -> Node:
    """Return the node of the instruction ``i``. ``group`` has the names of the fusions, loops, conditionals
    and calls around it, the outermost first."""
    return Node(
        _id(computation, i.name),
        i.name,
        i.opcode,
        i.shape,
        group,
        shapes.result_bytes(i.opcode, i.shape),
        cost.flops(calls, computation, i),
        attribution.line(computation, i),
        instruction_attributes(i.tail).get("sharding"),
        op_name(i),
    )


def _edges(
    computation: Computation, i: Instruction, calls: CallGraph, groups: dict[str, tuple[str, ...]]
) -> list[Edge]:
    """Return the edges that end at the instruction ``i``, or at parameters of the computation that it calls.

    A computation gets edges only from the first instruction that calls it.

    Args:
      computation: the computation that contains ``i``.
      calls: the calls between the computations.
      groups: name of a computation -> names of the fusions, loops, conditionals and calls around it, the
        outermost first.
    """
    found = [Edge(_id(computation, name), _id(computation, i.name), n) for n, name in enumerate(i.inputs)]
    inside = (*groups[computation.name], i.name)
    # Edges from further callers could form a circle, if one call reads the result of another.
    called = [c for c in calls.of(computation, i) if groups[c.callee.name] == inside]
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
    return found + [
        Edge(_id(c, root.name), _id(computation, i.name), -1) for c, root in roots if root is not None
    ]
