"""What a compiled program does, by the user's line."""

from __future__ import annotations

import screen_runs

from jaxscope.analysis.hlo import line_costs
from jaxscope.analysis.hlo.program import analyze


def test_fusions_collectives_bytes_and_flops_are_counted_at_the_line_they_come_from():
    found = line_costs.of_program(analyze(screen_runs.HLO.replace("FILE", "train.py"), mesh=[("data", 8)]))
    product, fused = found["train.py", 5], found["train.py", 6]
    assert (product.flops, product.fusions) == (2 * 8 * 4 * 4, 0)
    assert (fused.flops, fused.fusions, fused.moved_bytes) == (0, 1, 2 * 8 * 4 * 4)
    assert fused.collectives == {"all-reduce": 1} and fused.sent_bytes == 224
    assert ("train.py", 11) not in found  # a subtraction alone: nothing is counted for it


def test_flops_inside_a_loop_without_a_trip_count_are_unknown():
    text = """\
HloModule m
%body (p: f32[4,4]) -> f32[4,4] {
  %p = f32[4,4]{1,0} parameter(0)
  ROOT %d = f32[4,4]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="d" source_file="t.py" source_line=3}
}
%condition (p: f32[4,4]) -> pred[] {
  %p.1 = f32[4,4]{1,0} parameter(0)
  ROOT %c = pred[] custom-call(%p.1), custom_call_target="unknown"
}
ENTRY %main (x: f32[4,4]) -> f32[4,4] {
  %x = f32[4,4]{1,0} parameter(0)
  ROOT %w = f32[4,4]{1,0} while(%x), condition=%condition, body=%body
}
"""
    assert line_costs.of_program(analyze(text))["t.py", 3].flops is None
