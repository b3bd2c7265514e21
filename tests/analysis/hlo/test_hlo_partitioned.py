"""Programs on eight devices: what they must contain follows from how they are written."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hlo_cases import TESTS

from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.program import analyze
from jaxscope.analysis.hlo.reader import read

pytestmark = [pytest.mark.capture, pytest.mark.costly]

LINES = (TESTS / "programs" / "partitioned.py").read_text().splitlines()
D8 = ["data"]


def blame(collective):
    """The word behind ``# blame:`` on the collective's line."""
    assert collective.source.file.endswith("partitioned.py")
    return LINES[collective.source.line - 1].partition("# blame: ")[2]


@pytest.fixture
def program(partitioned, request):
    facts = json.loads((partitioned / "programs.json").read_text())

    def analyzed(name, mesh="its own"):
        text = (partitioned / f"{name}.hlo.txt").read_text()
        found = analyze(text, mesh=facts[name]["mesh"] if mesh == "its own" else mesh)
        assert found.problems == []
        return found

    analyzed.facts = facts
    return analyzed


def rows(found, *fields):
    return [tuple(getattr(c, f) for f in fields) for c in found.collectives]


def test_data_parallel_sums_the_gradients_once(program):
    found = program("data_parallel")
    assert {c.kind for c in found.collectives} == {"all-reduce"}
    assert sum(c.bytes for c in found.collectives) == 3 * 64 * 64 * 4
    assert all(c.axes == D8 and c.origin == "inserted" and c.executions == 1 for c in found.collectives)
    assert {blame(c) for c in found.collectives} == {"dot"}


def test_tensor_parallel_sums_each_block_over_the_model_axis(program):
    found = program("tensor_parallel")
    each = ("all-reduce", ["model"], 16 * 64 * 4, 1, "inserted")
    assert rows(found, "kind", "axes", "bytes", "executions", "origin") == [each] * 4
    assert {blame(c) for c in found.collectives} == {"down"}


def test_a_scan_over_layers_sums_once_in_the_text_and_six_times_in_fact(program):
    found = program("tensor_parallel_scan")
    assert rows(found, "kind", "axes", "executions") == [("all-reduce", ["model"], 6)]
    assert blame(found.collectives[0]) == "down"
    assert [w.trip_count for w in found.loops] == [6]


def test_fully_sharded_gathers_each_weight_and_scatters_its_gradient(program):
    found = program("fully_sharded")
    assert Counter(c.kind for c in found.collectives) == {"all-gather": 3, "reduce-scatter": 3}
    assert all(c.axes == D8 and c.origin == "asked" and blame(c) == "gather" for c in found.collectives)
    assert {c.bytes for c in found.collectives} == {64 * 64 * 4, 64 * 64 * 4 // 8}
    assert {c.wire_bytes for c in found.collectives} == {64 * 64 * 4 * 7 // 8}


def test_a_pipeline_passes_on_at_every_tick(program):
    found = program("pipeline")
    assert rows(found, "kind", "axes", "executions", "origin") == [
        ("collective-permute", ["stage"], 9, "asked")
    ]
    assert blame(found.collectives[0]) == "ppermute"


def test_experts_are_sent_their_tokens_and_send_them_back(program):
    found = program("expert_parallel")
    assert (
        rows(found, "kind", "axes", "bytes", "group_size", "groups")
        == [("all-to-all", ["expert"], 4 * 8 * 16 * 4, 4, 2)] * 2
    )
    assert [blame(c) for c in found.collectives] == ["dispatch", "combine"]


@pytest.mark.parametrize("order", ["in_order", "reversed", "transposed"])
def test_every_collective_of_jax_is_found_on_its_axes_whatever_the_order_of_the_devices(program, order):
    found = program(f"every_collective_{order}")
    local = 64 * 64 * 4
    expected = Counter()
    for axes, size in ((("a",), 4), (("b",), 2), (("a", "b"), 8)):
        expected[("all-reduce", axes, local, "psum")] += 1
        expected[("all-reduce", axes, local, "pmax")] += 1
        expected[("all-gather", axes, local * size, "all_gather")] += 1
        expected[("reduce-scatter", axes, local // size, "psum_scatter")] += 1
        expected[("all-to-all", axes, local, "all_to_all")] += 1
        expected[("collective-permute", axes, local, "ppermute")] += 1
    assert Counter((c.kind, tuple(c.axes), c.bytes, blame(c)) for c in found.collectives) == expected
    assert {c.origin for c in found.collectives} == {"asked"}


def test_groups_along_a_part_of_an_axis_are_sub_axes(program):
    found = program("sub_axes")
    assert {blame(c): c.axes for c in found.collectives} == {
        "near": ["data:(4)2"],
        "middle": ["data:(2)2"],
        "far": ["data:(1)2"],
        "ends": ["data:(1)2", "data:(4)2"],
    }


def test_pmap_is_a_mesh_of_one_axis(program):
    found = program("pmapped", mesh=[("i", 8)])
    assert rows(found, "kind", "axes", "bytes", "origin") == [("all-reduce", ["i"], 32 * 32 * 4, "asked")]
    assert blame(found.collectives[0]) == "psum"


def test_trip_counts_multiply_through_nested_loops(program):
    found = program("nested_loops")
    assert {blame(c): c.executions for c in found.collectives} == {"inner": 35, "outer": 7}
    assert {(w.trip_count, w.executions) for w in found.loops} == {(7, 1), (5, 7)}


def test_executions_are_unknown_in_a_loop_that_depends_on_data(program):
    found = program("loop_until")
    assert {blame(c): c.executions for c in found.collectives} == {"condition": None, "body": None}
    assert [(w.trip_count, w.executions) for w in found.loops] == [(None, 1)]


def test_requested_and_inserted_are_distinguished_inside_one_shard_map(program):
    found = program("partly_manual")
    assert sorted(rows(found, "axes", "origin")) == [(["a"], "asked"), (["b"], "inserted")]


def test_a_reshard_for_an_output_was_inserted_and_is_blamed_on_what_it_copies(program):
    found = program("replicated_output")
    assert rows(found, "kind", "axes", "origin") == [("all-gather", D8, "inserted")]
    assert "jnp.sin" in LINES[found.collectives[0].source.line - 1]


def test_donated_arguments_are_aliased_or_listed_as_donors(program):
    memory = program("donating").memory
    by_name = {p.name: p for p in memory.parameters}
    assert by_name["state['w']"].aliased == [[1]]
    assert by_name["state['b']"].aliased == [[0]]
    assert (by_name["unused"].aliased, by_name["unused"].donor, by_name["unused"].matches) == ([], True, 0)
    assert not by_name["batch"].donor
    assert memory.alias_bytes == program.facts["donating"]["aliased"]


def test_the_lines_of_a_twelve_layer_transformer_are_the_users(program, partitioned):
    module = read((partitioned / "transformer.hlo.txt").read_text())
    graph = CallGraph(module)
    lines = Attribution(module, graph)
    named = [(c, i) for c in module.computations.values() for i in c.instructions if "metadata={" in i.tail]
    found = [lines.line(c, i) for c, i in named]
    assert len(named) > 1000
    own = [f for f in found if f is not None and f.file.endswith("partitioned.py")]
    assert len(own) >= 0.95 * len(named)


def test_each_collective_of_a_transformer_is_blamed_on_a_line_of_its_arithmetic(program):
    found = program("transformer")
    assert len(found.collectives) > 50
    assert all(blame(c) for c in found.collectives)
    assert {c.origin for c in found.collectives} == {"inserted"}
    assert all(c.axes for c in found.collectives)
    # What is summed over the model axis is what Megatron sums: projections, their gradients, embeddings.
    assert {"project", "mlp", "qkv"} <= {blame(c) for c in found.collectives if c.axes == ["model"]}


def test_every_donated_parameter_of_a_transformer_is_aliased(program):
    memory = program("transformer").memory
    assert {p.name for p in memory.parameters if not p.aliased} == {"tokens", "targets"}


def test_bytes_of_arguments_are_those_that_the_compiler_states(program):
    for name, facts in program.facts.items():
        assert program(name).memory.argument_bytes == facts["arguments"], name


def test_arithmetic_is_what_the_compiler_counts(program):
    assert program("matrix_product").matrix_flops == program.facts["matrix_product"]["flops"]
