"""Sums over conditionals: exclusive branches are not added up."""

from __future__ import annotations

import msgspec
import pytest
from hlo_cases import case

from jaxscope.analysis import bounds, machines
from jaxscope.analysis.hlo.branches import Bounds, Branch, bounds_of, largest, smallest
from jaxscope.analysis.hlo.program import analyze
from jaxscope.present.programs import bytes_within, times

A0, A1, B0 = Branch("a", 0, 2), Branch("a", 1, 2), Branch("b", 0, 3)


def test_the_smallest_and_the_largest_branch_of_each_conditional_count():
    rows = [((), 1), ((A0,), 10), ((A0, B0), 100), ((A1,), 20)]
    assert (smallest(rows), largest(rows)) == (1 + 10, 1 + 110)
    assert (smallest([((A0,), 10)]), largest([((A0,), 10)])) == (0, 10)  # nothing in the other branch


def test_an_unknown_figure_leaves_a_lower_bound():
    assert bounds_of([((), 5), ((A0,), None)]) == Bounds(5, None)
    assert bytes_within(Bounds(5, None)) == "at least 5 B" and bytes_within(Bounds(0, None)) == "?"
    assert bytes_within(Bounds(5, 9)) == "5 B to 9 B" and bytes_within(Bounds(0, 9)) == "at most 9 B"


def test_a_conditional_in_a_loop_is_counted_by_its_branches():
    """Five turns: the branches multiply 64x256 with 256x256 once and twice; the first sums, the second gathers."""
    found = analyze(case("cond__cpu_jax0102"), mesh=[("data", 8)])
    once = 2 * 64 * 256 * 256
    assert found.matrix_flops is None and found.flops == Bounds(5 * once, 5 * 2 * once)
    assert found.flops_by_type == {"f32": 5 * once}
    assert found.flops_unknown == "the branches of a conditional have different matrix products"
    kinds = {c.kind: c for c in found.collectives}
    assert {c.executions for c in kinds.values()} == {5}
    assert {c.executions_at_least for c in kinds.values()} == {0}
    assert {times(c) for c in kinds.values()} == {"at most 5x"}
    assert len({c.conditional for c in kinds.values()}) == 1
    sent = sorted(c.sent_bytes for c in kinds.values())
    assert found.wire_by_axes == {("data",): Bounds(*sent)} and sent[0] < sent[1]
    assert found.wire_bytes_by_axes == {"data": None} and found.wire_bytes_at_least_by_axes == {
        "data": sent[0]
    }


@pytest.mark.parametrize("name", ["switch__cpu_jax0120"])
def test_a_branch_without_work_makes_the_lower_bound_zero(name):
    found = analyze(case(name), mesh=[("data", 8)])
    once = 2 * 64 * 128 * 128
    assert found.flops == Bounds(0, 2 * once)
    always = [c for c in found.collectives if not c.branches]
    inside = [c for c in found.collectives if c.branches]
    assert len(always) == 1 and len(inside) == 4 and {len(c.branches) for c in inside} == {1, 2}
    assert found.wire_by_axes["data",].least == always[0].sent_bytes


def test_the_bound_on_the_time_takes_the_smallest_branch():
    found = analyze(case("cond__cpu_jax0102"), mesh=[("data", 8)])
    target = machines.parse("v5e:2x4")
    limits = bounds.of_program(
        target, found.flops_by_type, None, found.collectives, found.mesh, 8, uncounted=found.flops_unknown
    )
    least = msgspec.structs.replace(min(found.collectives, key=lambda c: c.sent_bytes), branches=())
    alone = bounds.of_program(target, {}, None, [least], found.mesh, 8)
    assert 0 < limits.axes["data",] == alone.axes["data",]
    assert limits.compute == pytest.approx(5 * 2 * 64 * 256 * 256 / 197e12)


def test_a_computation_that_a_branch_and_the_program_call_runs_at_least_never():
    text = """HloModule m

f {
  ROOT d = f32[4]{0} parameter(0)
}

yes {
  p = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} all-reduce(p), replica_groups={}, to_apply=f
}

no {
  ROOT p = f32[4]{0} parameter(0)
}

ENTRY e {
  p = f32[4]{0} parameter(0)
  c = pred[] constant(true)
  x = f32[4]{0} call(p), to_apply=yes
  ROOT r = f32[4]{0} conditional(c, x, x), true_computation=yes, false_computation=no
}
"""
    (found,) = analyze(text).collectives
    assert found.executions == 2 and found.executions_at_least == 0
