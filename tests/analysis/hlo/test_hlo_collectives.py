"""Collectives in forms that the recorded modules do not hold."""

from __future__ import annotations

import pytest
from hlo_cases import case, module

from jaxscope.analysis.hlo import collectives, groups
from jaxscope.analysis.hlo.origin import origin
from jaxscope.analysis.hlo.program import analyze
from jaxscope.analysis.hlo.wire_bytes import wire_bytes
from jaxscope.model.run import Run
from jaxscope.present.programs import axes, line_of
from jaxscope.present.text import Places

HEADER = "HloModule jit_f, is_scheduled=true, num_partitions=8"
PARAMETER = "%a = f32[16] parameter(0)"
GROUPS = "channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true"


def only(*lines, mesh=(("a", 4), ("b", 2)), **more):
    (found,) = analyze(module(PARAMETER, *lines, **more), mesh=mesh).collectives
    return found


@pytest.mark.parametrize(
    ("line", "kind", "size"),
    [
        (f"%x = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add", "all-reduce", 64),
        (f"%x = (f32[16], f32[2]) all-reduce-start(%a, %a), {GROUPS}, to_apply=%add", "all-reduce", 72),
        (f"%x = f32[64] all-gather(%a), {GROUPS}, dimensions={{0}}", "all-gather", 256),
        # The same as JAX 0.12 prints it: operands in a tuple of their own.
        (f"%x = ((f32[16]), f32[16]) all-reduce-start(%a), {GROUPS}, to_apply=%add", "all-reduce", 64),
        (
            f"%x = ((f32[16], f32[2]), (f32[16], f32[2])) all-reduce-start(%a, %a), {GROUPS}, to_apply=%add",
            "all-reduce",
            72,
        ),
        (f"%x = (f32[16], f32[64]) all-gather-start(%a), {GROUPS}", "all-gather", 256),
        (
            f"%x = ((f32[16], f32[2]), (f32[64], f32[8])) all-gather-start(%a, %a), {GROUPS}",
            "all-gather",
            288,
        ),
        (f"%x = f32[4] reduce-scatter(%a), {GROUPS}, to_apply=%add", "reduce-scatter", 16),
        (f"%x = ((f32[16]), f32[4]) reduce-scatter-start(%a), {GROUPS}", "reduce-scatter", 16),
        (
            f"%x = ((f32[16], f32[8]), (f32[4], f32[2])) reduce-scatter-start(%a, %a), {GROUPS}",
            "reduce-scatter",
            24,
        ),
        (f"%x = (f32[8], f32[8]) all-to-all(%a, %a), {GROUPS}", "all-to-all", 64),
        (f"%x = f32[16] collective-broadcast(%a), {GROUPS}", "collective-broadcast", 64),
        (
            f"%x = ((f32[8], f32[8]), (f32[8], f32[8]), u32[]) all-to-all-start(%a, %a), {GROUPS}",
            "all-to-all",
            64,
        ),
        (f"%x = f32[16] ragged-all-to-all(%a, %a, %a, %a, %a, %a), {GROUPS}", "ragged-all-to-all", 64),
    ],
)
def test_bytes_are_those_of_the_result(line, kind, size):
    found = only(line)
    assert (found.kind, found.bytes, found.axes, found.group_size, found.groups) == (kind, size, ["a"], 4, 2)
    assert found.is_async is ("-start(" in line)
    assert found.name == "x"


def test_a_permute_start_prints_its_operand_first():
    found = only(
        "%x = (f32[16], f32[8], u32[], u32[]) collective-permute-start(%a), channel_id=1, "
        "source_target_pairs={{0,1},{1,0}}",
        "%y = f32[8] collective-permute-done(%x)",
    )
    assert (found.kind, found.bytes, found.axes) == ("collective-permute", 32, ["b"])
    assert (found.group_size, found.groups, found.overlap) == (None, None, False)


def test_a_permute_start_of_several_operands_gives_the_second_tuple():
    found = only(
        "%x = ((f32[16], f32[4]), (f32[16], f32[4])) collective-permute-start(%a, %a), channel_id=1, "
        "source_target_pairs={{0,1},{1,0}}"
    )
    assert (found.bytes, found.wire_bytes) == (80, 80)


SCATTER = f"""%all-reduce-scatter (i: f32[16]) -> f32[4] {{
  %i = f32[16] parameter(0)
  %r = f32[16] all-reduce(%i), {GROUPS}, to_apply=%add
  %c = s32[] constant(0)
  ROOT %s = f32[4] dynamic-slice(%r, %c), dynamic_slice_sizes={{4}}
}}

"""


def test_a_reduce_scatter_is_as_large_as_its_result_however_a_platform_writes_it():
    fused = module(
        PARAMETER, "ROOT %x = f32[4] fusion(%a), kind=kCustom, calls=%all-reduce-scatter", header=""
    )
    (of_tpu,) = analyze(f"{HEADER}\n\n{SCATTER}{fused}", mesh=[("a", 4), ("b", 2)]).collectives
    plain = only(f"%x = f32[4] reduce-scatter(%a), {GROUPS}, dimensions={{0}}, to_apply=%add")
    for found in (of_tpu, plain):
        assert (found.kind, found.bytes, found.operand_bytes, found.wire_bytes) == (
            "reduce-scatter",
            16,
            64,
            48,
        )


def chain(number):
    """A TPU's asynchronous all-gather: started, carried through a loop that computes beside it, ended."""
    tag = f', frontend_attributes={{chain_id="{number}"}}' if number is not None else ""
    config = ', backend_config={"async_collective_fusion_config":{"flag_start":"2","flag_end":"8"}}'
    state, gather = (
        "(f32[16], f32[64], u32[])",
        f"f32[64] all-gather(%p0), {GROUPS}, dimensions={{0}}{tag}{config}",
    )
    n = number or 0
    return (
        f"""%start.{n} (p0: f32[16]) -> {state} {{
  %p0 = f32[16] parameter(0)
  %g = {gather}
  ROOT %c = {state} custom-call(%g), custom_call_target="AsyncCollectiveStart"
}}

%middle.{n} (p0: f32[16], p1: f32[64]) -> (f32[16], f32[64]) {{
  %p0 = f32[16] parameter(0)
  %p1 = f32[64] parameter(1)
  %g = {gather}
  %m = f32[16] multiply(%p0, %p0)
  ROOT %t = (f32[16], f32[64]) tuple(%m, %g)
}}

%done.{n} (p0: f32[16], p1: f32[64]) -> f32[64] {{
  %p0 = f32[16] parameter(0)
  %p1 = f32[64] parameter(1)
  %g = {gather}
  ROOT %c = f32[64] custom-call(%p1, %g), custom_call_target="AsyncCollectiveDone"
}}

%body.{n} (p: (s32[], f32[16], f32[64])) -> (s32[], f32[16], f32[64]) {{
  %p = (s32[], f32[16], f32[64]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %n = s32[] add(%i, %one)
  %x = f32[16] get-tuple-element(%p), index=1
  %y = f32[64] get-tuple-element(%p), index=2
  %f = (f32[16], f32[64]) fusion(%x, %y), kind=kOutput, calls=%middle.{n}
  %v = f32[16] get-tuple-element(%f), index=0
  %w = f32[64] get-tuple-element(%f), index=1
  ROOT %t = (s32[], f32[16], f32[64]) tuple(%n, %v, %w)
}}

%condition.{n} (p: (s32[], f32[16], f32[64])) -> pred[] {{
  %p = (s32[], f32[16], f32[64]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %five = s32[] constant(5)
  ROOT %l = pred[] compare(%i, %five), direction=LT
}}

""",
        [
            f"%s{n} = {state} fusion(%a), kind=kCustom, calls=%start.{n}",
            f"%x{n} = f32[16] get-tuple-element(%s{n}), index=0",
            f"%y{n} = f32[64] get-tuple-element(%s{n}), index=1",
            f"%zero{n} = s32[] constant(0)",
            f"%t{n} = (s32[], f32[16], f32[64]) tuple(%zero{n}, %x{n}, %y{n})",
            f"%w{n} = (s32[], f32[16], f32[64]) while(%t{n}), condition=%condition.{n}, body=%body.{n}",
            f"%u{n} = f32[16] get-tuple-element(%w{n}), index=1",
            f"%v{n} = f32[64] get-tuple-element(%w{n}), index=2",
            f"%d{n} = f32[64] fusion(%u{n}, %v{n}), kind=kCustom, calls=%done.{n}",
        ],
    )


@pytest.mark.parametrize("numbers", [(0,), (0, 1), (None,)])
def test_a_chain_that_passes_through_a_loop_is_one_collective_that_runs_once(numbers):
    parts = [chain(n) for n in numbers]
    entry = module(PARAMETER, *(line for _, lines in parts for line in lines), header="")
    program = analyze(HEADER + "\n\n" + "".join(bodies for bodies, _ in parts) + entry)
    assert [w.trip_count for w in program.loops] == [5] * len(numbers)
    assert [
        (c.kind, c.computation, c.executions, c.bytes, c.is_async, c.overlap) for c in program.collectives
    ] == [("all-gather", f"start.{n or 0}", 1, 256, True, True) for n in numbers]


def test_a_part_of_a_chain_whose_start_was_cut_off_still_counts():
    bodies, lines = chain(3)
    entry = module(PARAMETER, *lines, header="")
    cut = bodies.replace("AsyncCollectiveStart", "Something").replace(
        ', frontend_attributes={chain_id="3"}', "", 1
    )
    assert [c.computation for c in analyze(f"{HEADER}\n\n{cut}{entry}").collectives] != []


def test_a_permute_that_moves_nothing_runs_along_no_axis():
    found = only("%x = f32[16] collective-permute(%a), channel_id=1, source_target_pairs={{0,0},{1,1}}")
    assert (found.axes, found.wire_bytes) == ([], 0)


def test_groups_of_one_run_along_no_axis():
    found = only("%x = f32[16] all-reduce(%a), replica_groups={{0}}, to_apply=%add")
    assert (found.axes, found.group_size, found.wire_bytes) == ([], 1, 0)


START = f"%s = (f32[16], f32[64]) all-gather-start(%a), {GROUPS}"
DONE = "%d = f32[64] all-gather-done(%s)"


@pytest.mark.parametrize(
    ("lines", "header", "overlap"),
    [
        ([START, "%m = f32[16] multiply(%a, %a)", DONE], HEADER, True),
        ([START, "%m = f32[16] bitcast(%a)", DONE, "%n = f32[16] multiply(%a, %a)"], HEADER, False),
        ([START, "%m = f32[16] multiply(%a, %a)"], HEADER, None),  # the done is not in the text
        ([START, "%m = f32[16] multiply(%a, %a)", DONE], "HloModule jit_f, num_partitions=8", None),
    ],
)
def test_a_transfer_overlaps_with_what_the_schedule_puts_between(lines, header, overlap):
    assert only(*lines, header=header).overlap is overlap


def test_a_collective_in_a_computation_that_is_started_is_asynchronous():
    wrapped = (
        "%wrapped (p: f32[16]) -> f32[64] {\n  %p = f32[16] parameter(0)\n"
        f"  ROOT %g = f32[64] all-gather(%p), {GROUPS}\n}}\n\n"
    )
    entry = module(
        PARAMETER,
        "%s = ((f32[16]), f32[64], s32[]) async-start(%a), calls=%wrapped",
        "%u = ((f32[16]), f32[64], s32[]) async-update(%s)",
        "%m = f32[16] multiply(%a, %a)",
        "ROOT %d = f32[64] async-done(%u)",
        header="",
    )
    (found,) = analyze(f"{HEADER}\n\n{wrapped}{entry}").collectives
    assert (found.kind, found.is_async, found.overlap, found.executions) == ("all-gather", True, True, 1)


def test_channels_repeat_and_tell_nothing_apart():
    lines = [f"%x{i} = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add" for i in range(3)]
    assert len(analyze(module(PARAMETER, *lines)).collectives) == 3


def test_a_send_to_the_host_is_no_collective():
    lines = [
        "%t = token[] after-all()",
        "%s = (f32[16], u32[], token[]) send(%a, %t), channel_id=2, is_host_transfer=true",
        "%d = token[] send-done(%s), channel_id=2, is_host_transfer=true",
    ]
    assert analyze(module(PARAMETER, *lines)).collectives == []


def test_a_send_between_devices_runs_along_its_pairs():
    found = only(
        "%t = token[] after-all()",
        "%s = (f32[16], u32[], token[]) send(%a, %t), channel_id=2, "
        "frontend_attributes={_xla_send_recv_source_target_pairs={{0,2},{2,4}}}",
    )
    assert (found.kind, found.bytes, found.axes) == ("send", 64, ["a"])


def test_groups_larger_than_memory_are_unknown_and_the_rest_is_read():
    found = only(
        "%x = f32[16] all-reduce(%a), channel_id=1, use_global_device_ids=true, "
        "replica_groups=[1,1000000000000]<=[1000000000000], to_apply=%add"
    )
    assert (found.axes, found.group_size, found.wire_bytes, found.bytes) == (None, None, None, 64)


def test_very_many_groups_are_looked_at_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(collectives, "MAX_IDS", 1 << 12)
    lines = [
        f"%y{i} = f32[16] all-reduce(%a), channel_id=1, use_global_device_ids=true, "
        f"replica_groups=[1,{256 - i}]<=[{256 - i}], to_apply=%add"
        for i in range(40)
    ]
    program = analyze(module(PARAMETER, *lines), mesh=[("a", 256)])
    assert any("too many devices" in p.text for p in program.problems)
    assert [(c.axes, c.axes_around) for c in program.collectives[:2]] == [(["a"], None), (None, ["a"])]
    assert len(program.collectives) == 40
    assert program.collectives[-1].axes_around is None


def test_bytes_on_the_wire_are_added_up_by_axes():
    program = analyze(
        module(
            PARAMETER,
            f"%x = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add",
            f"%y = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add",
            "%z = f32[16] collective-permute(%a), channel_id=1, source_target_pairs={{0,1}}",
            "%w = f32[16] ragged-all-to-all(%a, %a, %a, %a, %a, %a), channel_id=1, replica_groups={{0,1}}",
        ),
        mesh=[("a", 4), ("b", 2)],
    )
    assert program.wire_bytes_by_axes == {"a": 2 * 96, "b": None}


@pytest.mark.parametrize(
    ("kind", "size", "members", "sent"),
    [
        ("all-reduce", 800, 8, 1400),
        ("all-gather", 800, 8, 700),
        ("reduce-scatter", 100, 8, 700),
        ("all-to-all", 800, 8, 700),
        ("collective-permute", 800, None, 800),
        ("collective-broadcast", 800, 8, 800),
        ("ragged-all-to-all", 800, 8, None),
        ("all-reduce", 800, 1, 0),
        ("all-reduce", 800, None, None),
        ("all-reduce", None, 8, None),
        ("send", 800, None, 800),
        ("recv", 800, None, 0),
    ],
)
def test_bytes_on_the_wire(kind, size, members, sent):
    assert wire_bytes(kind, size, members) == sent


@pytest.mark.parametrize(
    ("op_name", "name", "anybody", "expected"),
    [
        ("jit(f)/shard_map/psum_invariant", "x", True, "asked"),
        ("jit(f)/transpose(jvp())/shard_map/reduce_scatter", "x", True, "asked"),
        ("pmap(f)/psum", "x", True, "asked"),
        ("jit(f)/shard_map/dot_general", "x", True, "inserted"),
        ("jit(f)/dot_general", "psum.3", False, "inserted"),
        ("jit(f)/psum", "x", False, "inserted"),  # a function of that name, not in a shard_map
        ("jit(f)/psum/dot_general", "x", True, "inserted"),
        ("params['w']", "all-gather", False, "inserted"),
        (None, "psum_invariant.7.clone", True, "asked"),
        (None, "all-gather.7", False, "inserted"),
        (None, "all-gather.7", True, None),
    ],
)
def test_requested_or_inserted(op_name, name, anybody, expected):
    assert origin(op_name, name, lambda: anybody) == expected


def test_groups_that_are_no_axis_are_not_named_after_one():
    """axis_index_groups: halves and every second are sub-axes, 0 with 7 and 1 with 6 is none."""
    found = analyze(case("groups__tpuv5e_jax0102"), mesh=[("data", 8)])
    named = sorted((c.axes or [], c.axes_around or [], axes(c)) for c in found.collectives)
    assert named == [
        ([], ["data"], "part of data"),
        ([], ["data"], "part of data"),
        (["data:(1)4"], [], "data:(1)4"),
        (["data:(2)4"], [], "data:(2)4"),
    ]
    assert set(found.wire_by_axes) == {None, *(tuple(n[0]) for n in named if n[0])}


@pytest.mark.parametrize(
    "mark",
    [
        'frontend_attributes={is_spmd_generated="true"}',
        'backend_config={"collective_backend_config":{"is_spmd_generated":true}}',
    ],
)
def test_what_the_partitioner_marks_as_its_own_is_inserted(mark):
    # Without the mark its name would be that of the program's own psum, or nothing would be known.
    for before in ('metadata={op_name="jit(f)/shard_map/psum"}, ', ""):
        line = f"%x = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add, {before}{mark}"
        more = '%y = f32[16] negate(%x), metadata={op_name="jit(f)/shard_map/neg"}'
        assert only(line, more).origin == "inserted"
        assert only(line.replace(f", {mark}", ""), more).origin == ("asked" if before else None)


def test_a_line_taken_from_a_neighbor_is_a_guess():
    here = 'metadata={op_name="jit(f)/mul" source_file="m.py" source_line=3}'
    sure = only(f"%x = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add, {here}")
    guess = only(f"%x = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add", f"%y = f32[16] negate(%x), {here}")
    none = only(f"%x = f32[16] all-reduce(%a), {GROUPS}, to_apply=%add")
    assert [c.source_certainty for c in (sure, guess, none)] == ["certain", "likely", None]
    places = Places(Run())
    assert line_of(guess, places) == f"probably {line_of(sure, places)}" and line_of(none, places) == ""


def sends(name, mesh):
    found = analyze(case(name), mesh=mesh).collectives
    return sorted(
        (c.transfer, c.axes, c.group_size, c.bytes, c.wire_bytes) for c in found if c.kind == "send"
    )


def test_transfers_between_four_slices_have_axes_and_bytes():
    """What libtpu 0.0.42 compiles of a psum, a ppermute, an all_gather and a psum_scatter over four slices."""
    mib = 64 * 256 * 4
    assert sends("manual4__tpuv5e4slice_jax0102", [("slice", 4), ("fsdp", 4)]) == [
        ("all-gather", ["slice"], 4, mib, 3 * mib),
        (
            "all-reduce",
            ["slice"],
            4,
            mib // 4,
            6 * mib // 16,
        ),  # of psum over both: the part of one device of a slice
        ("all-reduce", ["slice"], 4, mib, 6 * mib // 4),
        ("collective-permute", ["slice"], None, mib, mib),
        ("reduce-scatter", ["slice"], 4, mib, 3 * mib // 4),
    ]


def test_transfers_between_slices_along_one_of_two_axes():
    found = sends("three__tpuv5e4slice_jax0120", [("pod", 2), ("slice", 2), ("fsdp", 4)])
    assert [row[:3] for row in found] == [
        ("all-reduce", ["pod"], 2),
        ("all-reduce", ["pod", "slice"], 4),
        ("all-reduce", ["slice"], 2),
        ("all-to-all", ["slice"], 2),
    ]


@pytest.mark.parametrize(
    "target", ["{1,2}x{0:99}", "{{7,8}}", "{1,2}x", "{{100000->}}", "{" * 50, "{0,1}x{0:1}"]
)
def test_a_target_between_slices_that_makes_no_sense_is_unknown(target):
    assert groups.between_slices(target, 4) is None
