"""The data flow of one computation as a networkx DiGraph, built when somebody asks.

Nodes are instruction names with ``opcode``, ``shape``, ``bytes`` (of the result), ``flops`` (of dots and
convolutions), ``kind`` (of a collective or a fusion), ``file`` and ``line``; an edge goes from what is read
to what reads it and carries the bytes that pass. All attributes are plain numbers and strings, so that
``networkx`` can write the graph as GraphML; ``to_dot`` writes DOT without further packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import networkx as nx

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.collectives import BEGINS
from jaxscope.analysis.hlo.cost import flops
from jaxscope.analysis.hlo.fusions import kind_of
from jaxscope.analysis.hlo.lexing import attribute, operands
from jaxscope.analysis.hlo.module import Computation, Instruction, Module

_NO_OPERANDS = frozenset({"parameter", "constant", "iota"})
# Views and names: they pass bytes on and move none.
_VIEWS = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"})


def build(
    module: Module, computation: Computation | None = None, *, attribute_lines: bool = True
) -> nx.DiGraph:
    """The graph of a computation, ENTRY by default; empty where there is none.

    Control dependencies (``control-predecessors``) are edges with ``control=True`` and no bytes. An operand
    that the text does not define is left out.
    """
    graph: nx.DiGraph = nx.DiGraph()
    where = computation or module.entry
    if where is None:
        return graph
    calls = CallGraph(module)
    lines = Attribution(module, calls) if attribute_lines else None
    for instruction in where.instructions:
        graph.add_node(instruction.name, **_facts(calls, where, instruction, lines))
    for instruction in where.instructions:
        if instruction.opcode in _NO_OPERANDS:
            continue
        for name in operands(instruction.tail):
            source = where.find(name)
            if source is not None:
                graph.add_edge(
                    name,
                    instruction.name,
                    bytes=shapes.result_bytes(source.opcode, source.shape) or 0,
                    control=False,
                )
        if "control-predecessors=" in instruction.tail:
            before = attribute(instruction.tail, "control-predecessors") or ""
            for name in before.strip("{}").replace("%", "").replace(" ", "").split(","):
                if name in graph and not graph.has_edge(name, instruction.name):
                    graph.add_edge(name, instruction.name, bytes=0, control=True)
    return graph


def _facts(
    calls: CallGraph, where: Computation, instruction: Instruction, lines: Attribution | None
) -> dict[str, str | int]:
    kind = BEGINS.get(instruction.opcode) or (
        kind_of(instruction) if instruction.operation == "fusion" else ""
    )
    facts: dict[str, str | int] = {
        "opcode": instruction.opcode,
        "shape": instruction.shape,
        "bytes": shapes.result_bytes(instruction.opcode, instruction.shape) or 0,
        "flops": flops(calls, where, instruction) or 0,
        "kind": kind,
    }
    frame = lines.line(where, instruction) if lines else None
    if frame is not None:
        facts |= {"file": frame.file, "line": frame.line, "function": frame.function}
    return facts


def ancestors(graph: nx.DiGraph, name: str) -> set[str]:
    """Everything ``name`` waits for; empty for a name that is not there."""
    return set(nx.ancestors(graph, name)) if name in graph else set()


def descendants(graph: nx.DiGraph, name: str) -> set[str]:
    """Everything that waits for ``name``."""
    return set(nx.descendants(graph, name)) if name in graph else set()


def longest_path(graph: nx.DiGraph, weight: str = "bytes", *, to: str | None = None) -> tuple[int, list[str]]:
    """The heaviest chain of instructions, each weighed by ``bytes`` or ``flops`` of its own, and its weight.

    Views (tuple, bitcast, parameter ...) weigh nothing. Instructions in a circle, which only a damaged
    text has, are left out.

    Args:
      to: the chain ends here: what a collective waits for the longest.
    """
    nodes = graph.nodes
    if to is not None:
        if to not in graph:
            return 0, []
        graph = graph.subgraph(ancestors(graph, to) | {to})

    best: dict[str, int] = {}
    before: dict[str, str | None] = {}
    for name in _ordered(graph):
        facts = nodes[name]
        own = 0 if facts["opcode"] in _VIEWS else int(facts.get(weight, 0))
        previous = max((p for p in graph.predecessors(name) if p in best), key=best.__getitem__, default=None)
        best[name] = own + (best[previous] if previous is not None else 0)
        before[name] = previous
    end = to if to in best else max(best, key=best.__getitem__, default=None)
    path: list[str] = []
    step: str | None = end
    while step is not None:
        path.append(step)
        step = before[step]
    return (best[end] if end is not None else 0), path[::-1]


def _ordered(graph: nx.DiGraph) -> Iterator[str]:
    """Sources first; what stands in a circle or behind one never comes."""
    missing = {name: graph.in_degree(name) for name in graph}
    ready = [name for name, count in missing.items() if not count]
    while ready:
        name = ready.pop()
        yield name
        for reader in graph.successors(name):
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)


def waits_for(graph: nx.DiGraph, name: str, interesting: Callable[[str], bool] | None = None) -> list[str]:
    """The collectives, kernels and other works that ``name`` cannot start before, the nearest first.

    Args:
      interesting: of an opcode; by default everything but views and constants.
    """
    chosen = interesting or (lambda opcode: opcode not in _VIEWS)
    if name not in graph:
        return []
    order = nx.single_source_shortest_path_length(graph.reverse(copy=False), name)
    return [n for n in order if n != name and chosen(graph.nodes[n]["opcode"])]


def to_dot(graph: nx.DiGraph) -> str:
    """The graph in the DOT language."""
    rows = ["digraph hlo {", "  rankdir=TB; node [shape=box, fontname=monospace];"]
    for name, facts in graph.nodes(data=True):
        rows.append(f"  {_quoted(name)} [label={_quoted(_label(name, facts))}];")
    for source, target, facts in graph.edges(data=True):
        style = " [style=dashed]" if facts.get("control") else ""
        rows.append(f"  {_quoted(source)} -> {_quoted(target)}{style};")
    return "\n".join([*rows, "}", ""])


def _label(name: str, facts: dict[str, object]) -> str:
    label = f"{name}\n{facts.get('opcode', '')} {facts.get('shape', '')}"
    return f"{label}\n{facts['file']}:{facts['line']}" if "file" in facts else label


def _quoted(text: str) -> str:
    printable = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return '"' + printable.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def write_graphml(graph: nx.DiGraph, path: Path) -> None:
    """Write GraphML; characters that XML cannot hold become ``?``."""
    clean = nx.relabel_nodes(graph, {n: _xml(n) for n in graph})
    for _, facts in clean.nodes(data=True):
        facts.update((k, _xml(v)) for k, v in list(facts.items()) if isinstance(v, str))
    nx.write_graphml(clean, path)


def _xml(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\t\n" else "?" for c in text)


def names(graph: nx.DiGraph, opcodes: Iterable[str]) -> list[str]:
    """Instructions of any of the opcodes, in the order of the text."""
    chosen = frozenset(opcodes)
    return [name for name, facts in graph.nodes(data=True) if facts["opcode"] in chosen]
