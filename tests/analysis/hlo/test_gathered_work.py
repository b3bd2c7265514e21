"""Matrix products that all devices compute alike from gathered arrays."""

import pytest

from jaxscope.analysis.hlo import program

MODULE = """HloModule jit_f, entry_computation_layout={()->f32[]}, num_partitions=4

%body (p: (s32[], f32[64,64])) -> (s32[], f32[64,64]) {
  %p = (s32[], f32[64,64]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %h = f32[64,64]{1,0} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %d2 = f32[64,64]{1,0} dot(%h, %h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = (s32[], f32[64,64]{1,0}) tuple(%next, %d2)
}

%cond (p: (s32[], f32[64,64])) -> pred[] {
  %p = (s32[], f32[64,64]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %n = s32[] constant(5)
  ROOT %c = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (w: f32[64,64], x: f32[16,64]) -> f32[64,64] {
  %w = f32[64,64]{1,0} parameter(0), sharding={replicated}
  %x = f32[16,64]{1,0} parameter(1), sharding={devices=[4,1]<=[4]}
  %g = f32[64,64]{1,0} all-gather(%x), replica_groups={{0,1,2,3}}, dimensions={0}, metadata={op_name="jit(f)/shard_map/all_gather"}
  %d = f32[64,64]{1,0} dot(%g, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %zero = s32[] constant(0)
  %init = (s32[], f32[64,64]{1,0}) tuple(%zero, %d)
  %loop = (s32[], f32[64,64]{1,0}) while(%init), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %r = f32[64,64]{1,0} get-tuple-element(%loop), index=1
}
"""
ONE = 2 * 64**3  # flops of one product


@pytest.mark.parametrize(
    ("change", "flops"),
    [
        (("", ""), 6 * ONE),
        (("{{0,1,2,3}}", "{{0,1},{2,3}}"), None),  # two halves, with different rows
        (("parameter(0), sharding={replicated}", "parameter(0), sharding={devices=[4,1]<=[4]}"), None),
        (("dot(%g, %w)", "dot(%w, %w)"), None),  # nothing gathered is multiplied
        (("jit(f)/shard_map/all_gather", "jit(f)/dot_general"), None),  # the partitioner inserted it
        (("tuple(%zero, %d)", "tuple(%zero, %w)"), ONE),
        (("tuple(%next, %d2)", "tuple(%next, %s)"), ONE + 5 * ONE),
    ],
)
def test_products_that_all_devices_compute_alike_are_counted(change, flops):
    text = MODULE.replace(*change)
    if "%s)" in text:
        text = text.replace("  ROOT %t", "  %s = f32[64,64]{1,0} tanh(%d2)\n  ROOT %t")
    read = program.analyze(text)
    assert read.problems == [] and read.matrix_flops == 6 * ONE
    assert (read.gathered_work.flops if read.gathered_work else None) == flops


def test_a_value_that_differs_in_a_later_iteration_is_not_counted():
    text = MODULE.replace(
        "  ROOT %t",
        "  %id = u32[] partition-id()\n  %f = f32[] convert(%id)\n"
        "  %b = f32[64,64]{1,0} broadcast(%f), dimensions={}\n"
        "  %s = f32[64,64]{1,0} add(%d2, %b)\n  ROOT %t",
    ).replace("tuple(%next, %d2)", "tuple(%next, %s)")
    assert program.analyze(text).gathered_work.flops == ONE


def test_a_branch_that_depends_on_the_device_is_not_computed_by_all():
    inner = MODULE[MODULE.index("%body") : MODULE.index("%cond")]
    branch = inner.replace("%body", "%branch").replace("ROOT %t", "ROOT %q")
    text = MODULE.replace("ENTRY", branch + "ENTRY").replace(
        "%loop = (s32[], f32[64,64]{1,0}) while(%init), condition=%cond, body=%body,",
        "%id = u32[] partition-id()\n  %on = s32[] convert(%id)\n  %loop = (s32[], f32[64,64]{1,0})"
        " conditional(%on, %init, %init), branch_computations={%body, %branch},",
    )
    assert program.analyze(text).gathered_work.flops == ONE
    assert program.analyze(text.replace("conditional(%on", "conditional(%zero")).gathered_work.flops > ONE


def test_arguments_that_are_known_to_be_whole_count_as_the_same():
    text = MODULE.replace(", sharding={replicated}", "").replace(", sharding={devices=[4,1]<=[4]}", "")
    assert program.analyze(text).gathered_work is None
    assert program.analyze(text, whole={0}).gathered_work.flops == 6 * ONE
