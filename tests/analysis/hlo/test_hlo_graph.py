"""The data flow as a graph."""

from __future__ import annotations

import networkx as nx
import pytest
from hlo_cases import TRUTH, case, module

from jaxscope.analysis.hlo import graph
from jaxscope.analysis.hlo.reader import read

TEXT = module(
    "%p = f32[4,8] parameter(0)",
    "%q = f32[8,2] parameter(1)",
    "%small = f32[4] slice(%p), slice={[0:4]}",
    "%dot = f32[4,2] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "%sum = f32[4,2] all-reduce(%dot), replica_groups={}, to_apply=%add",
    "%late = f32[4] negate(%small), control-predecessors={%sum}",
    "ROOT %out = (f32[4,2], f32[4]) tuple(%sum, %late)",
)


@pytest.fixture
def flow():
    return graph.build(read(TEXT))


def test_ancestors_and_descendants(flow):
    assert graph.ancestors(flow, "sum") == {"dot", "p", "q"}
    assert graph.descendants(flow, "dot") == {"sum", "late", "out"}
    assert graph.ancestors(flow, "absent") == set()


def test_the_longest_path_by_bytes_and_by_flops(flow):
    assert graph.longest_path(flow) == (32 + 32 + 16, ["p", "dot", "sum", "late"])
    flops, path = graph.longest_path(flow, "flops", to="sum")
    assert flops == 2 * 4 * 2 * 8
    assert path[-2:] == ["dot", "sum"]


def test_why_a_collective_waits(flow):
    assert graph.waits_for(flow, "sum") == ["dot"]
    assert graph.names(flow, ["all-reduce"]) == ["sum"]


def test_control_dependencies_are_edges_without_bytes(flow):
    assert flow.edges["sum", "late"] == {"bytes": 0, "control": True}
    assert flow.edges["p", "dot"] == {"bytes": 128, "control": False}


@pytest.mark.parametrize("name", TRUTH)
def test_a_real_entry_computation_has_no_circle_and_is_written(name, tmp_path):
    found = read(case(name))
    flow = graph.build(found)
    assert len(flow) == len(found.entry.instructions)
    assert nx.is_directed_acyclic_graph(flow)
    graph.write_graphml(flow, tmp_path / "g.graphml")
    assert nx.read_graphml(tmp_path / "g.graphml").number_of_edges() == flow.number_of_edges()
    weight, path = graph.longest_path(flow)
    assert path[-1] in flow and weight > 0


def test_hostile_names_are_escaped(tmp_path):
    text = module('%a"];evil = f32[4] parameter(0)', 'ROOT %b\x1b[31m = f32[4] negate(%a"];evil)')
    flow = graph.build(read(text))
    dot = graph.to_dot(flow)
    assert '\\"];evil' in dot and "\x1b" not in dot
    graph.write_graphml(flow, tmp_path / "g.graphml")
    assert len(nx.read_graphml(tmp_path / "g.graphml")) == 2


def test_a_circle_in_a_damaged_text_does_no_harm():
    flow = graph.build(
        read(module("%a = f32[4] negate(%b)", "%b = f32[4] negate(%a)", "%c = f32[4] parameter(0)"))
    )
    assert graph.longest_path(flow) == (0, ["c"])
    assert graph.longest_path(flow, to="a") == (0, [])
    assert len(graph.build(read("nothing"))) == 0
