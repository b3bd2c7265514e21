"""The TPU compiler's own estimate, added up over one call of the program."""

import pytest
from hlo_cases import case, module

from jaxscope.analysis.hlo import program

LOOP = """HloModule jit_f, is_scheduled=true

%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p), backend_config={"window_config":{"estimated_cycles":"900"}}
}

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4]{0} get-tuple-element(%s), index=1
  %f = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused, backend_config={"window_config":{"estimated_cycles":"100","x":[]}}
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  ROOT %t = (s32[], f32[4]{0}) tuple(%j, %f)
}

%cond (s: (s32[], f32[4])) -> pred[] {
  %s = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] LIMIT
  ROOT %c = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (p: f32[4], m: s32[]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %m = s32[] parameter(1)
  %zero = s32[] constant(0)
  %c = f32[4]{0} copy(%p), backend_config={"window_config":{"estimated_cycles":"7"}}
  %t = (s32[], f32[4]{0}) tuple(%zero, %c)
  %w = (s32[], f32[4]{0}) while(%t), condition=%cond, body=%body
  ROOT %r = f32[4]{0} get-tuple-element(%w), index=1
}
"""


def test_a_loop_counts_as_often_as_it_runs_and_the_inside_of_a_fusion_not_again():
    assert program.analyze(LOOP.replace("LIMIT", "constant(5)")).estimated_cycles == 7 + 5 * 100


def test_a_loop_of_unknown_length_has_no_sum():
    assert program.analyze(LOOP.replace("LIMIT", "get-tuple-element(%s), index=0")).estimated_cycles is None


def test_a_program_without_estimates_has_none_rather_than_zero():
    assert program.analyze(module("ROOT %p = f32[4]{0} parameter(0)")).estimated_cycles is None
    assert program.analyze(case("rnn_scan__cpu_jax0102")).estimated_cycles is None
    assert program.analyze("no module at all").estimated_cycles is None


@pytest.mark.parametrize("name", ["mlp_fsdp__tpuv5e_jax0102", "tf6_scan_fsdp_remat__tpuv5e_jax0102"])
def test_real_tpu_programs_have_one(name):
    found = program.analyze(case(name)).estimated_cycles
    assert found is not None and found > 1000
