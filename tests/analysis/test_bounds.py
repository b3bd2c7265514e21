"""Times that no run can beat, from peak rates."""

import gzip

import msgspec
import pytest
from folders import TESTS
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import bounds, machines
from jaxscope.analysis.hlo.program import analyze
from jaxscope.present import targets
from jaxscope.present.spans import plain

V5E, V5P = machines.parse("v5e:4x4"), machines.parse("v5p:8x8x8")
MESH = [("data", 4), ("model", 4)]
ROWS = "replica_groups=[4,4]<=[16], use_global_device_ids=true"  # along model
COLUMNS = "replica_groups=[4,4]<=[4,4]T(1,0), use_global_device_ids=true"  # along data


def of(target, flops=None, moved=0, collectives=(), mesh=MESH, partitions=None, **more):
    return bounds.of_program(
        target, flops, moved, list(collectives), mesh, partitions or target.devices, **more
    )


def gathered(elements, groups, trips=1):
    """What stands in a program that gathers f32 of ``elements`` in a loop of ``trips``."""
    lines = [
        "HloModule jit_f, is_scheduled=true, num_partitions=16",
        "%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {",
        "  %s = (s32[], f32[4]) parameter(0)",
        "  %i = s32[] get-tuple-element(%s), index=0",
        "  %x = f32[4] get-tuple-element(%s), index=1",
        f"  %g = f32[{elements}] all-gather(%x), channel_id=1, dimensions={{0}}, {groups}",
        "  ROOT %t = (s32[], f32[4]) tuple(%i, %x)",
        "}",
        "%condition (s: (s32[], f32[4])) -> pred[] {",
        "  %s = (s32[], f32[4]) parameter(0)",
        "  ROOT %c = pred[] constant(true)",
        "}",
        "ENTRY %main (p: (s32[], f32[4])) -> (s32[], f32[4]) {",
        "  %p = (s32[], f32[4]) parameter(0)",
        f'  ROOT %l = (s32[], f32[4]) while(%p), condition=%condition, body=%body, backend_config={{"known_trip_count":{{"n":"{trips}"}}}}',
        "}",
    ]
    return analyze("\n".join(lines), mesh=MESH).collectives


def test_each_bound_is_an_amount_over_a_stated_rate():
    both = [*gathered(400_000, COLUMNS), *gathered(800_000, ROWS)]
    found = of(V5E, {"bf16": 197 * 10**9}, 819_000, both)
    assert found.compute == pytest.approx(1e-3) and found.memory == pytest.approx(1e-6)
    # Three quarters arrive over the two links that a corner of 4x4 has, of 50 GB/s.
    assert found.axes == {("data",): pytest.approx(1.2e6 / 100e9), ("model",): pytest.approx(2.4e6 / 100e9)}
    assert (found.least, found.binds) == (found.compute, "compute")


def test_a_loop_counts_as_often_as_it_runs_and_once():
    once, often = (of(V5E, None, 0, gathered(400_000, ROWS, n)).axes["model",] for n in (1, 24))
    assert often == pytest.approx(24 * once)
    assert of(V5E, None, 0, gathered(400_000, ROWS, "many")).axes == {("model",): None}


def test_devices_in_an_order_of_their_own_may_share_a_host_or_not():
    hosts, there = machines.parse("h100:2x8"), gathered(400_000, ROWS)
    assert of(hosts, None, 0, there).axes["model",] > 0
    assert of(hosts, None, 0, there, in_order=False).axes == {("model",): None}
    assert of(V5E, None, 0, there, in_order=False) == of(V5E, None, 0, there)  # all in one slice


def test_what_binds_is_the_largest_that_is_known():
    assert of(V5E, None, 819_000_000, gathered(4, COLUMNS)).binds == "memory"
    assert of(V5E, {"bf16": 1}, 0, gathered(10**9, ROWS)).binds == ("model",)
    nothing = bounds.of_program(V5E, None, None, [], None, None)
    assert (nothing.least, nothing.binds) == (None, None)


def test_an_element_type_takes_the_fastest_rate_the_machine_may_use_for_it():
    h100 = machines.parse("h100:8")
    assert of(V5E, {"f32": 197 * 10**12}).compute == pytest.approx(1)  # one pass of bf16
    assert of(h100, {"f32": 4945 * 10**11}).compute == pytest.approx(1, rel=1e-3)  # tf32
    assert of(h100, {"f64": 669 * 10**11}).compute == pytest.approx(1, rel=1e-3)
    assert of(V5P, {"s8": 918 * 10**12}).compute == pytest.approx(1)
    assert of(V5E, {"f8e5m2": 197 * 10**12}).compute == pytest.approx(1)  # has no fp8 of its own


@pytest.mark.parametrize("flops", [{"f64": 1}, {"mixed": 1}, {"bf16": 1, "s4": 1}, None])
def test_flops_without_a_stated_rate_make_the_bound_unknown_not_smaller(flops):
    assert of(V5E, flops).compute is None


def test_operands_of_two_types_take_the_faster_of_their_rates():
    h100 = machines.parse("h100:8")
    assert of(V5E, {"bf16 x f32": 197 * 10**12}).compute == pytest.approx(1)
    assert of(h100, {"bf16 x f32": 989 * 10**12}).compute == pytest.approx(1, rel=1e-3)
    assert of(V5E, {"bf16 x s4": 1}).compute is None


@pytest.mark.parametrize(
    ("flops", "why"),
    [
        ({}, "the program has no matrix products, and only these are counted"),
        ({"bf16": 1, "s4": 1, "f64": 1}, "no public page states how fast this machine computes with s4, f64"),
        (None, "the text does not state what the custom call mine computes"),
    ],
)
def test_a_bound_of_compute_that_is_not_known_says_why(flops, why):
    found = bounds.of_program(
        V5E,
        flops,
        819_000,
        [],
        None,
        None,
        uncounted=why if flops is None else None,
    )
    assert found.compute is None and found.uncounted == why
    assert f"compute unknown ({why})" in plain(targets.bounds(found))
    assert of(V5E, {"bf16": 1}, 1).uncounted is None


def test_the_products_of_a_tpu_between_two_types_have_a_bound():
    text = gzip.decompress(
        (TESTS / "data" / "hlo" / "mlp_fsdp__tpuv5e_jax0102.hlo.txt.gz").read_bytes()
    ).decode()
    made = analyze(text)
    assert made.flops_by_type == {"bf16 x f32": 14_680_064, "bf16": 8_388_608}
    assert of(V5E, made.flops_by_type).compute == pytest.approx((14_680_064 + 8_388_608) / 197e12)


GEMM = """HloModule jit_f

ENTRY %main (a: bf16[8,64], b: bf16[64,32]) -> bf16[8,32] {{
  %a = bf16[8,64]{{1,0}} parameter(0)
  %b = bf16[64,32]{{1,0}} parameter(1)
  %c = (bf16[8,32]{{1,0}}, s8[4194304]{{0}}) custom-call(%a, %b), custom_call_target="{target}", backend_config={config}
  ROOT %r = bf16[8,32]{{1,0}} get-tuple-element(%c), index=0
}}
"""
CONTRACTS = '{"gemm_backend_config":{"alpha_real":1,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}'


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul"])
def test_a_product_that_goes_to_cublas_is_counted(target):
    assert analyze(GEMM.format(target=target, config=CONTRACTS)).flops_by_type == {"bf16": 2 * 8 * 32 * 64}


@pytest.mark.parametrize(
    ("target", "config"),
    [
        ("tpu_custom_call", CONTRACTS),
        ("__cublas$gemm", "{}"),
        ("__cublas$gemm", '{"gemm_backend_config":[]}'),
        ("__cublas$gemm", CONTRACTS.replace('["1"]', '["9"]')),
        ("__cublas$gemm", CONTRACTS.replace('["1"]', '"1"')),
    ],
)
def test_a_custom_kernel_leaves_a_lower_bound_of_the_flops_and_of_the_time(target, config):
    dot = "  %d = bf16[8,32]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT"
    made = analyze(GEMM.format(target=target, config=config).replace("  ROOT", dot))
    assert made.matrix_flops is None and not made.problems
    assert made.flops_by_type == {"bf16": 2 * 8 * 32 * 64} and made.matrix_flops_at_least == 2 * 8 * 32 * 64
    assert made.flops_unknown == f"without 1 custom kernel: {target}"
    found = bounds.of_program(V5E, made.flops_by_type, None, [], None, None, uncounted=made.flops_unknown)
    assert found.compute == pytest.approx(2 * 8 * 32 * 64 / 197e12) and found.binds == "compute"
    assert f"compute without 1 custom kernel: {target}" in plain(targets.bounds(found))
    alone = bounds.of_program(V5E, {}, None, [], None, None, uncounted=made.flops_unknown)
    assert alone.compute is None and alone.uncounted == made.flops_unknown


@pytest.mark.parametrize("target", ["ConcatBitcast", "X64SplitLow", "TopK", "AllocateBuffer"])
def test_a_custom_call_that_only_moves_data_leaves_the_flops_exact(target):
    made = analyze(GEMM.format(target=target, config="{}"))
    assert made.matrix_flops == 0 and made.flops_unknown is None


def test_a_device_is_half_of_a_chip_with_two():
    tpu7x = machines.parse("tpu7x:2x2x1")
    assert of(tpu7x, {"bf16": 2307 * 10**12}).compute == pytest.approx(2)
    assert of(tpu7x, None, 7_380_000_000_000).memory == pytest.approx(2)


def test_what_stands_on_a_figure_that_others_quote_says_so():
    v4, a100 = machines.parse("v4:2x2x4"), machines.parse("a100:8")
    assert of(v4, {"bf16": 1}, 1, gathered(400, ROWS)).quoted == [("model",)]
    assert of(a100, {"bf16": 1}, 1).quoted == ["compute"]
    assert of(V5E, {"bf16": 1}, 1, gathered(400, ROWS)).quoted == []


def test_a_machine_without_stated_figures_has_no_bounds_and_an_unknown_one_not_even_that():
    v2 = of(machines.parse("v2:2x4"), {"bf16": 1}, 1, gathered(400, ROWS))
    assert (v2.compute, v2.memory, v2.axes, v2.least, v2.binds) == (
        None,
        None,
        {("model",): None},
        None,
        None,
    )
    assert of(msgspec.structs.replace(V5E, machine="v99")) is None


TYPES = st.dictionaries(
    st.sampled_from(["bf16", "f32", "s8", "f8e5m2", "f64", "s4"]), st.integers(0, 1 << 60)
)


@given(
    st.sampled_from([*machines.known(), "2*v5e:4x4"]), TYPES, st.integers(0, 1 << 60), st.integers(1, 1 << 20)
)
def test_more_work_is_never_less_time_and_no_time_is_negative(name, flops, moved, more):
    target = machines.parse(name)
    one, two = (of(target, {k: n * k_ for k, n in flops.items()}, moved * k_) for k_ in (1, more))
    for a, b in ((one.compute, two.compute), (one.memory, two.memory), (one.least, two.least)):
        assert (a is None) == (b is None)
        assert a is None or 0 <= a <= b
