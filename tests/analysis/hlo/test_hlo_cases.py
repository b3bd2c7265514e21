"""Modules whose content was read from XLA's own binary form: what the text says must equal it."""

from __future__ import annotations

import pytest
from hlo_cases import TRUTH, case

from jaxscope.analysis.hlo import collectives, loops
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.program import analyze
from jaxscope.analysis.hlo.reader import read

# Programs that communicate by hand, in a shard_map or a pmap; in the others the partitioner inserts
# everything.
ASKED = (
    *("allcoll", "cond_", "dyn_while", "manual", "moe_a2a", "pipeline", "pmap", "ragged", "switch", "tuples"),
    "zero_nested",
)
KINDS = {"kLoop": "loop", "kInput": "input", "kOutput": "output", "kCustom": "custom"}
SYNTAXES = {
    "explicit": "explicit_v1",
    "iota": "iota_v2",
    "mesh": "mesh_axes_v3",
    "pairs": "source_target_pairs",
}
HOW = {"printed": "known_trip_count", "inferred": "induction", None: "no induction/bound"}
COLUMNS = (
    "static",
    "executed",
    "operand_bytes",
    "output_bytes",
    "executed_operand_bytes",
    "executed_output_bytes",
)


def added_up(found, runs, key):
    """The truth's table: sums by ``key(collective)``."""
    table = {}
    for c in found:
        row = table.setdefault(key(c), dict.fromkeys(COLUMNS, 0))
        times = runs[c.computation]
        for column, value in zip(
            COLUMNS,
            (1, times, c.operand_bytes, c.bytes, times * c.operand_bytes, times * c.bytes),
            strict=True,
        ):
            row[column] += value
    return table


@pytest.mark.parametrize("name", TRUTH)
def test_a_module_holds_what_its_binary_form_says(name):
    text, truth = case(name), TRUTH[name]
    program = analyze(text, mesh=list(truth["mesh"].items()))
    module = read(text)
    graph = CallGraph(module, collectives.BEGINS)
    found_loops, _ = loops.find(graph)
    # The truth counts a loop of unknown length as one round.
    runs = graph.executions({loop: 1 if n is None else n for loop, n in loops.trips(found_loops).items()})
    between_devices = [c for c in program.collectives if c.kind not in ("send", "recv")]
    said = {
        "fusions_toplevel": program.fusions.by_kind,
        "fusions_nested_in_fusions": program.fusions.nested_by_kind,
        "collectives_by_kind": added_up(between_devices, runs, lambda c: c.kind),
        "collectives_by_kind_axes": added_up(between_devices, runs, lambda c: f"{c.kind}@{','.join(c.axes)}"),
        "raw_collective_instructions": sum(
            kind not in ("send", "recv") for _, _, kind in collectives.collective_instructions(graph)
        ),
        "logical_collectives": len(between_devices),
        "n_aliased_outputs": len(program.memory.aliases),
        "n_buffer_donors": len(program.memory.donors),
        "n_entry_params": len(program.memory.parameters),
        "group_syntaxes": sorted({SYNTAXES[c.syntax] for c in between_devices}),
        "megascale_sends": sum(c.kind == "send" for c in program.collectives),
        "whiles": sorted(
            (
                {
                    "name": w.name,
                    "trip": w.trip_count,
                    "how": HOW[w.how],
                    "executed": w.executions,
                }
                for w in program.loops
            ),
            key=lambda w: w["name"],
        ),
        "mesh": dict(program.mesh),
    }
    expected = {
        **truth,
        "fusions_toplevel": {KINDS[k]: n for k, n in truth["fusions_toplevel"].items()},
        "fusions_nested_in_fusions": {KINDS[k]: n for k, n in truth["fusions_nested_in_fusions"].items()},
        "whiles": sorted(truth["whiles"], key=lambda w: w["name"]),
    }
    # Where a module came from is not in its text.
    assert expected.keys() - said.keys() == {"platform", "jax", "program"}
    for field, value in said.items():
        assert value == expected[field], field
    assert program.problems == []


@pytest.mark.parametrize("name", TRUTH)
def test_executions_are_unknown_exactly_where_a_trip_count_is(name):
    program = analyze(case(name), mesh=list(TRUTH[name]["mesh"].items()))
    unknown = {w.body for w in program.loops if w.trip_count is None}
    without = [c for c in program.collectives if c.executions is None]
    assert bool(without) == bool(unknown)
    if not unknown:
        executed = sum(k["executed"] for k in TRUTH[name]["collectives_by_kind"].values())
        told = sum(c.executions for c in program.collectives if c.kind not in ("send", "recv"))
        assert told == executed


@pytest.mark.parametrize("name", [n for n in TRUTH if TRUTH[n]["whiles"]])
def test_trip_counts_are_read_off_the_induction_variable_where_they_are_not_printed(name):
    text = case(name).replace('"known_trip_count"', '"something_else"')
    counts = {w.name: w.trip_count for w in analyze(text).loops}
    assert counts == {w["name"]: w["trip"] for w in TRUTH[name]["whiles"]}


@pytest.mark.parametrize("name", TRUTH)
def test_every_collective_has_a_line_and_an_origin(name):
    program = analyze(case(name))
    asked = name.startswith(ASKED)
    known = "asked" if asked else "inserted"
    # XLA's GPU compiler leaves some that were asked for without a name: then nobody can tell.
    assert all(c.origin == known or (asked and c.origin is c.op_name is None) for c in program.collectives)
    assert all(c.source and c.source.file == "programs/progs.py" for c in program.collectives)


@pytest.mark.parametrize("name", TRUTH)
def test_the_same_program_takes_the_same_arithmetic_on_every_platform(name):
    """Padding, tiles and TPU's dilated windows are not counted as work."""
    same = {
        "mlp_": 23_068_672,
        "rnn_": 6_062_080,
        "zero_": 125_829_120,
        "allcoll": 0,
        "dyn": 0,
        "pmap": 1_048_576,
        "pipeline": 2_883_584,
        "fsdp_scan__tpu": 241_591_910_400,
    }
    flops = [n for start, n in same.items() if name.startswith(start)]
    if flops:
        assert analyze(case(name)).matrix_flops == flops[0]


def test_the_transfers_between_slices_run_along_the_outer_part_of_the_data_axis():
    program = analyze(case("mlp_dptp__tpuv5e2slice_jax0102"), mesh=[("data", 4), ("model", 2)])
    sends = [c for c in program.collectives if c.kind == "send"]
    assert [c.axes for c in sends] == [["data:(1)2"]] * 4
    assert {c.bytes for c in sends} == {32 * 8 * 128 * 4}


def test_transfers_on_tpu_overlap_with_the_fusions_of_their_chain():
    program = analyze(case("mlp_fsdp__tpuv5e_jax0102"))
    chained = [c for c in program.collectives if c.is_async]
    assert len(chained) == 5
    assert all(c.overlap for c in chained)
    assert all(c.kind == "all-gather" for c in chained)


def test_a_pair_that_the_backend_made_synchronous_overlaps_with_nothing():
    program = analyze(case("allcoll_4x2__gpuh100_jax0102"))
    assert all(c.is_async for c in program.collectives)
    assert [c.overlap for c in program.collectives].count(False) >= 16


def test_the_axes_are_known_without_being_given_where_the_text_names_the_mesh():
    program = analyze(case("allcoll_4x2__cpu_jax0120"))
    assert program.mesh == [("a", 4), ("b", 2)]
    assert all(c.axes for c in program.collectives)


def test_axes_made_up_by_the_partitioner_are_not_taken_for_the_users():
    program = analyze(case("mlp_fsdp__cpu_jax0102"))
    assert program.mesh is None
    assert all(c.axes is None for c in program.collectives)
