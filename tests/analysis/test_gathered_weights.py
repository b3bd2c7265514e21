"""Which all-gathers are the weights of fully sharded parameters, in texts of real compilers and in small ones."""

import gzip

import pytest
from folders import TESTS

from jaxscope.analysis import programs
from jaxscope.analysis.hlo.program import analyze

MESHES = {
    "mlp_3d_donate__cpu_jax0102": [("data", 2), ("fsdp", 2), ("model", 2)],
    "mlp_fsdp__cpu_jax0102": [("fsdp", 8)],
    "mlp_fsdp__gpuh100_jax0102": [("fsdp", 8)],
    "tf2_fsdptp_donate__cpu_jax0102": [("data", 4), ("model", 2)],
    "tf2_fsdptp_donate__tpuv5p_jax0120": [("data", 4), ("model", 2)],
    "tf6_scan_fsdp_remat__cpu_jax0102": [("data", 4), ("model", 2)],
    "mlp_dptp__tpuv5e2slice_jax0102": [("data", 8), ("model", 4)],
    "zero_nested_loops__cpu_jax0102": None,
    "lm__tpuv5e_jax0102": [("data", 8)],
    "fsdp2__tpuv5e_jax0102": [("data", 4), ("fsdp", 2)],
    "batchgathered__tpuv5e_jax0102": [("data", 8)],
    "gram__cpu_jax0102": [("data", 8)],
}


def text(name, stage="hlo.txt"):
    return gzip.decompress((TESTS / "data" / "hlo" / f"{name}.{stage}.gz").read_bytes()).decode()


def weights(made):
    return [c.weight for c in made.collectives if c.weight is not None]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mlp_fsdp__cpu_jax0102", ["p[0]['w1']", "p[0]['w2']", "p[1]['w1']", "p[1]['w2']"]),
        ("mlp_fsdp__gpuh100_jax0102", ["p[0]['w1']"]),
        # Of a scan's stack of layers, before it and in the backward loop; converted, laid out anew.
        ("tf6_scan_fsdp_remat__cpu_jax0102",
         ["params['emb']", *(f"params['layers']['{w}']" for w in ("o", "qkv", "w1", "w2") for _ in "fb")]),
        ("tf2_fsdptp_donate__cpu_jax0102",
         ["params['emb']", *(f"params['layers'][{i}]['{w}']" for i in (0, 1) for w in ("o", "qkv", "w1", "w2"))]),
        ("mlp_dptp__tpuv5e2slice_jax0102", []),
        # Put together from parts before the loop, gathered by a chain of fusions, beside a lookup in a split embedding.
        ("lm__tpuv5e_jax0102", ["p['head']", *(f"p['layers']['{w}']" for w in ("down", "up") for _ in "fb")]),
        ("fsdp2__tpuv5e_jax0102", [f"ws[{layer}][{i}]" for layer in (0, 1, 2) for i in (0, 1)]),
        ("batchgathered__tpuv5e_jax0102", []),  # a batch, for a weight split over the same axis
        ("gram__cpu_jax0102", []),  # rows against rows: data
        ("zero_nested_loops__cpu_jax0102", []),  # asked for in a shard_map, of what is no argument as it is
    ],
)  # fmt: skip
def test_the_weights_that_real_programs_gather_are_named(name, found):
    made = analyze(text(name), mesh=MESHES[name])
    assert sorted(weights(made)) == sorted(found) and not made.problems


def test_activations_that_are_gathered_are_no_weights():
    made = analyze(text("mlp_fsdp__cpu_jax0102"), mesh=MESHES["mlp_fsdp__cpu_jax0102"])
    gathers = [c for c in made.collectives if c.kind == "all-gather"]
    rest = [c for c in gathers if c.weight is None]
    assert len(rest) == 4 and all("transpose(jvp())" in c.op_name for c in rest)


def test_without_a_mesh_nobody_can_tell():
    assert weights(analyze(text("mlp_fsdp__cpu_jax0102"))) == []


SMALL = """HloModule jit_f, is_scheduled=true, num_partitions=4

ENTRY %main (p0: f32[32,128], p1: f32[16,128]) -> f32[16,128] {{
  %p0 = f32[32,128]{{1,0}} parameter(0), {w}metadata={{op_name="w"}}
  %p1 = f32[{x}]{{1,0}} parameter(1), {xs}metadata={{op_name="x"}}
  %ag = f32[128,128]{{1,0}} all-gather(%p0), channel_id=1, replica_groups=[1,4]<=[4], dimensions={{0}}, use_global_device_ids=true, metadata={{op_name="jit(f)/dot_general"}}
  %other = f32[{x}]{{1,0}} {made}
  ROOT %r = f32[{x}]{{1,0}} {used}
}}
"""
SPLIT = "sharding={devices=[4,1]<=[4]}, "
DOT = "dot(%other, %ag), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def small(x="16,128", xs=SPLIT, made="negate(%p1)", used=DOT):
    return analyze(SMALL.format(w=SPLIT, x=x, xs=xs, made=made, used=used), mesh=[("data", 4)])


def test_a_product_with_what_is_split_over_the_same_axis_makes_it_a_weight():
    assert weights(small()) == ["w"]


@pytest.mark.parametrize(
    "other",
    [
        {"xs": "sharding={replicated}, "},  # the batch is whole on every device: nothing asks for the gather
        {"used": "add(%other, %ag)", "x": "128,128"},  # no product
        # What it is multiplied with is gathered, too.
        {
            "made": "all-gather(%p1), channel_id=2, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true"
        },
        {"made": "negate(%p0)"},  # the weight itself
        {"made": "negate(%nothing)"},
    ],
)
def test_a_gather_that_nothing_split_asks_for_is_none(other):
    assert weights(small(**other)) == []


def test_where_the_text_does_not_say_how_inputs_lie_the_lowered_one_does():
    hlo = SMALL.format(w="", x="16,128", xs="", made="negate(%p1)", used=DOT)
    mlir = """module @jit_f attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%arg0: tensor<128x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}} loc("w"), %arg1: tensor<64x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{x}, {{}}]>}} loc("x")) -> (tensor<64x128xf32>) {{
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32> loc(#loc)
    return %0 : tensor<64x128xf32> loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc = loc(unknown)
"""
    around = programs.Around(mesh=[("data", 4)])
    found = {x: weights(programs.analyze(hlo, mlir.format(x=x), around).hlo) for x in ('{"data"}', "{}")}
    assert found == {'{"data"}': ["w"], "{}": []}


@pytest.mark.parametrize("cut", [100, 700, 900, 1100])
def test_a_text_that_is_cut_short_ends_nobody(cut):
    whole = SMALL.format(w=SPLIT, x="16,128", xs=SPLIT, made="negate(%p1)", used=DOT)
    assert weights(analyze(whole[:cut], mesh=[("data", 4)])) in ([], ["w"])


def test_a_loop_that_hands_its_weight_to_itself_in_a_circle_ends():
    circle = """HloModule jit_f, num_partitions=4

%b (t: (f32[8])) -> (f32[8]) {
  %t = (f32[8]{0}) parameter(0)
  %g = f32[8]{0} get-tuple-element(%t), index=0
  %ag = f32[32]{0} all-gather(%g), replica_groups=[1,4]<=[4], dimensions={0}, channel_id=1, use_global_device_ids=true
  ROOT %r = (f32[8]{0}) tuple(%g)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %w = (f32[8]{0}) while(%w2), condition=%b, body=%b
  %w2 = (f32[8]{0}) while(%w), condition=%b, body=%b
  ROOT %g = f32[8]{0} get-tuple-element(%w), index=0
}
"""
    assert weights(analyze(circle, mesh=[("data", 4)])) == []
