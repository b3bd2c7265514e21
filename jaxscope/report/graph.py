"""Write the graph of a compiled program to a file: GraphML, DOT (Graphviz) or JSON for Model Explorer.

Texts from the program are escaped for each format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape as xml
from xml.sax.saxutils import quoteattr

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.hlo.graph import Graph, Node
from jaxscope.errors import UsageError
from jaxscope.present.escape import escape
from jaxscope.report.json_report import compact

GRAPHML = "http://graphml.graphdrawing.org/xmlns"
# Attributes of a node: the name, and its type in GraphML.
_TYPES = {
    "name": "string",
    "opcode": "string",
    "shape": "string",
    "group": "string",
    "bytes": "long",
    "flops": "long",
    "file": "string",
    "line": "int",
    "function": "string",
    "sharding": "string",
    "operation": "string",
}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_of(path: Path) -> Callable[[Graph, str], Iterator[str]]:
    """Return the function that writes a graph in the format of the file ``path``: GraphML for ``.graphml``,
    DOT for ``.dot`` and ``.gv``, JSON for Model Explorer for ``.json``. The function takes a graph and its
    name, and yields the text of the file in parts.

    Raises:
      UsageError: the file has another extension.
    """
    formats = {".graphml": graphml, ".dot": dot, ".gv": dot, ".json": model_explorer}
    if path.suffix not in formats:
        raise UsageError(
            f"--graph: the name of {path} does not end with {', '.join(formats)}",
            hint="the ending names the format: .graphml, .dot, or .json for Model Explorer",
            slug="graph-format",
        )
    return formats[path.suffix]


def _facts(node: Node) -> dict[str, Any]:
    """Return the known facts about a node of the graph: name (``opcode``, ``shape``, ``bytes``, ...) ->
    value."""
    line = node.line
    found = {
        "name": node.name,
        "opcode": node.opcode,
        "shape": node.shape,
        "group": "/".join(node.group),
        "bytes": node.bytes,
        "flops": node.flops,
        "file": None if line is None else line.file,
        "line": None if line is None else line.line,
        "function": None if line is None else line.function,
        "sharding": node.sharding,
        "operation": node.operation,
    }
    return {key: value for key, value in found.items() if value not in (None, "")}


def graphml(graph: Graph, name: str) -> Iterator[str]:
    """Yield a GraphML file (http://graphml.graphdrawing.org/specification.html) with the graph, as parts of
    its text. ``name`` is the name of the graph in the file."""
    yield f'<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="{GRAPHML}">\n'
    for key, kind in _TYPES.items():
        yield f'<key id="{key}" for="node" attr.name="{key}" attr.type="{kind}"/>\n'
    yield '<key id="position" for="edge" attr.name="position" attr.type="int"/>\n'
    yield f'<graph id={_attribute(name)} edgedefault="directed">\n'
    for node in graph.nodes:
        data = "".join(f'<data key="{key}">{_xml(str(value))}</data>' for key, value in _facts(node).items())
        yield f"<node id={_attribute(node.id)}>{data}</node>\n"
    for n, edge in enumerate(graph.edges):
        ends = f"source={_attribute(edge.source)} target={_attribute(edge.target)}"
        yield f'<edge id="e{n}" {ends}><data key="position">{edge.position}</data></edge>\n'
    yield "</graph>\n</graphml>\n"


def _xml(text: str) -> str:
    """Return ``text`` escaped for XML. A character that XML forbids becomes the replacement character."""
    return xml(_NOT_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", text))


def dot(graph: Graph, name: str) -> Iterator[str]:
    """Yield a DOT file (Graphviz) with the graph, as parts of its text. Fusions, loops and calls are clusters
    of nodes. ``name`` is the name of the graph in the file."""
    yield f"digraph {_quoted(name)} {{\n  node [shape=box];\n"
    by_group = grouped((node.group, node) for node in graph.nodes)
    for group, nodes in by_group.items():
        opened = 0
        for depth in range(len(group)):
            # A cluster may be written several times: Graphviz merges clusters with the same name.
            inner = _quoted("cluster_" + "/".join(group[: depth + 1]))
            yield f"{'  ' * (depth + 1)}subgraph {inner} {{ label={_quoted(group[depth])};\n"
            opened += 1
        for node in nodes:
            yield f"{'  ' * (opened + 1)}{_quoted(node.id)} [{_label(node)}];\n"
        if opened:
            yield f"  {'}' * opened}\n"
    for edge in graph.edges:
        yield f"  {_quoted(edge.source)} -> {_quoted(edge.target)};\n"
    yield "}\n"


def _label(node: Node) -> str:
    """Return the attributes of a node in DOT: ``label="dot.1\\nf32[8]", opcode="dot"``."""
    facts = _facts(node)
    label = f"{node.name}\n{node.shape}"
    shown = "".join(
        f", {key}={_quoted(str(facts[key]))}" for key in ("opcode", "bytes", "flops") if key in facts
    )
    place = f"{facts['file']}:{facts['line']}" if "file" in facts else ""
    return f"label={_quoted(label)}{shown}" + (f", tooltip={_quoted(place)}" if place else "")


def _quoted(text: str) -> str:
    plain = "\\n".join(escape(part).replace("\\", "\\\\").replace('"', '\\"') for part in text.split("\n"))
    return f'"{plain}"'


def model_explorer(graph: Graph, name: str) -> Iterator[str]:
    """Yield a JSON file for Model Explorer with the graph, as parts of its text. Fusions, loops and calls are
    layers, which the viewer can open and close. ``name`` is the name of the graph in the file."""
    incoming: dict[str, list[dict[str, str]]] = {}
    for edge in graph.edges:
        incoming.setdefault(edge.target, []).append(
            {
                "sourceNodeId": edge.source,
                "sourceNodeOutputId": "0",
                "targetNodeInputId": str(max(edge.position, 0)),
            }
        )
    nodes = [
        {
            "id": node.id,
            "label": node.opcode,
            "namespace": "/".join(part.replace("/", "_") for part in node.group),
            "attrs": [{"key": key, "value": str(value)} for key, value in _facts(node).items()],
            "incomingEdges": incoming.get(node.id, []),
        }
        for node in graph.nodes
    ]
    yield compact({"label": name, "graphs": [{"id": name, "nodes": nodes}]}) + "\n"
