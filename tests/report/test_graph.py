"""The graph of a program: what is read of a text, and the formats as the programs read them that they are for."""

import collections
import graphlib
import itertools
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
import screen_runs
from hlo_cases import TRUTH, case
from hypothesis import given
from hypothesis import strategies as st
from test_formats import HOSTILE

from jaxscope.analysis.hlo import graph as reading
from jaxscope.analysis.hlo.graph import Edge, Graph, Node
from jaxscope.analysis.hlo.reader import read as read_module
from jaxscope.report import graph as report
from jaxscope.schema.keys import Frame

TEXT = (
    screen_runs.HLO.partition("ENTRY")[0].replace("FILE", "train.py")
    + """\
ENTRY %main (x: f32[8,4], w: f32[4,4]) -> f32[8,4] {
  %x = f32[8,4]{1,0} parameter(0), sharding={devices=[8,1]<=[8]}
  %w = f32[4,4]{1,0} parameter(1)
  %dot.1 = f32[8,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(train_step)/dot_general" source_file="train.py" source_line=5}
  %fusion.1 = f32[8,4]{1,0} fusion(%dot.1), kind=kLoop, calls=%fused
  ROOT %all-reduce.1 = f32[8,4]{1,0} all-reduce(%fusion.1), replica_groups={{0,1}}, to_apply=%add
}
"""
)
NODES = st.lists(
    st.builds(
        Node,
        id=HOSTILE, name=HOSTILE, opcode=HOSTILE, shape=HOSTILE, group=st.lists(HOSTILE, max_size=2).map(tuple),
        bytes=st.none() | st.integers(0, 2**60), flops=st.none() | st.integers(0, 2**60),
        line=st.none() | st.builds(Frame, file=HOSTILE, line=st.integers(0, 9), function=HOSTILE),
        sharding=st.none() | HOSTILE, operation=st.none() | HOSTILE,
    ),
    max_size=4, unique_by=lambda node: node.id,
)  # fmt: skip


def edges_of(nodes):
    return [Edge(a.id, b.id, n) for n, (a, b) in enumerate(itertools.pairwise(nodes))]


@pytest.fixture(scope="module")
def read():
    return reading.of(TEXT)


def test_instructions_have_bytes_flops_lines_and_the_fusion_that_they_are_in(read):
    known = {n.name: n for n in read.nodes}
    dot = known["dot.1"]
    assert (dot.bytes, dot.flops, dot.line.line, dot.group) == (128, 256, 5, ())
    assert dot.operation == "jit(train_step)/dot_general"
    assert known["x"].sharding == "{devices=[8,1]<=[8]}"
    assert known["mul.1"].group == ("fusion.1",) and known["mul.1"].line.line == 6


def test_an_operand_of_a_fusion_is_read_by_its_parameter_and_its_root_is_its_result(read):
    edges = {(e.source, e.target) for e in read.edges}
    assert ("main/x", "main/dot.1") in edges and ("main/w", "main/dot.1") in edges
    assert ("main/dot.1", "fused/p") in edges and ("main/dot.1", "main/fusion.1") not in edges
    assert ("fused/mul.1", "main/fusion.1") in edges and ("main/fusion.1", "main/all-reduce.1") in edges
    assert [e.position for e in read.edges if e.target == "main/dot.1"] == [0, 1]


CALLED_TWICE = """\
HloModule m

f {
  p = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(p)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} call(x), to_apply=f
  ROOT b = f32[4]{0} call(a), to_apply=f
}
"""


def test_a_computation_called_twice_is_drawn_inside_its_first_call():
    edges = {(e.source, e.target) for e in reading.of(CALLED_TWICE).edges}
    assert edges == {("main/x", "f/p"), ("f/p", "f/n"), ("f/n", "main/a"), ("main/a", "main/b")}


@pytest.mark.parametrize("name", TRUTH)
def test_the_graph_of_a_real_program_has_all_its_instructions_and_no_circle(name):
    text = case(name)
    graph = reading.of(text)
    ids = [n.id for n in graph.nodes]
    entry = read_module(text).entry
    assert len(set(ids)) == len(ids)
    assert {i.name for i in entry.instructions} == {
        n.name for n in graph.nodes if n.id.startswith(f"{entry.name}/")
    }
    after = collections.defaultdict(set)
    for e in graph.edges:
        after[e.target].add(e.source)
    list(graphlib.TopologicalSorter(after).static_order())  # raises CycleError if there is a circle
    tree = ET.fromstring("".join(report.graphml(graph, name)).encode())
    assert len(tree.findall(".//{*}node")) == len(ids) and len(tree.findall(".//{*}edge")) == len(graph.edges)


@pytest.mark.parametrize("text", ["", "not a program", TEXT[:300], TEXT.replace("%fused", "%gone")])
def test_a_text_that_cannot_be_read_gives_less_of_a_graph(text):
    found = reading.of(text)
    ids = {n.id for n in found.nodes}
    assert all(e.source in ids and e.target in ids for e in found.edges)


def test_networkx_reads_the_graphml(read):
    networkx = pytest.importorskip("networkx")
    found = networkx.parse_graphml("".join(report.graphml(read, "train_step#1")))
    assert found.is_directed() and networkx.is_directed_acyclic_graph(found)
    assert len(found) == len(read.nodes) and found.number_of_edges() == len(read.edges)
    assert found.nodes["main/dot.1"] == {
        "name": "dot.1", "opcode": "dot", "shape": "f32[8,4]{1,0}", "bytes": 128, "flops": 256, "line": 5,
        "file": "train.py",
        "operation": "jit(train_step)/dot_general",
    }  # fmt: skip


def test_model_explorer_takes_the_json(read):
    builder = pytest.importorskip("model_explorer.graph_builder")
    dacite = pytest.importorskip("dacite")
    found = json.loads("".join(report.model_explorer(read, "train_step#1")))
    graph = dacite.from_dict(builder.Graph, found["graphs"][0], dacite.Config(strict=True))
    assert {n.id: n.namespace for n in graph.nodes}["fused/mul.1"] == "fusion.1"


@given(NODES)
def test_hostile_names_leave_each_format_whole(nodes):
    graph = Graph(nodes, edges_of(nodes))
    name = "".join(n.name for n in nodes)
    tree = ET.fromstring("".join(report.graphml(graph, name)).encode())
    assert len(tree.findall(".//{*}node")) == len(nodes)
    text = "".join(report.dot(graph, name))
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)  # without quoted texts
    assert bare.count("{") == bare.count("}") and bare.isascii() and '"' not in bare
    assert text.isprintable() or text.replace("\n", "").isprintable()
    found = json.loads("".join(report.model_explorer(graph, name)))["graphs"][0]["nodes"]
    assert len(found) == len(nodes) and all(isinstance(a["value"], str) for n in found for a in n["attrs"])


def test_equal_clusters_of_dot_are_nested_as_groups_are():
    node = reading.of(TEXT).nodes[-1]
    inner = [
        msgspec.structs.replace(node, id=str(n), group=g) for n, g in enumerate([(), ("a",), ("a", "b")])
    ]
    text = "".join(report.dot(Graph(inner, []), "x"))
    assert text.count('subgraph "cluster_a" {') == 2 and text.count('subgraph "cluster_a/b" {') == 1


def test_dump_writes_the_format_that_the_ending_names(tmp_path, monkeypatch, capsys):
    from jaxscope import cli

    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    screen_runs.typical(tmp_path / "home" / "runs" / "train-1")
    for ending, begins in (
        ("graphml", "<?xml"),
        ("dot", 'digraph "train_step#'),
        ("json", '{"label":"train_step#'),
    ):
        assert cli.command(["dump", "--graph", f"g.{ending}"]) == 0
        assert capsys.readouterr().out.startswith(f"g.{ending}: train_step#")
        assert Path(f"g.{ending}").read_text().startswith(begins)
    assert cli.command(["dump", "--graph", "g.png"]) == 2 and ".graphml, .dot" in capsys.readouterr().err
    assert cli.command(["dump", "latest", "main", "--graph", "g.dot"]) == 2
