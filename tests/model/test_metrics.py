"""The figures of a program: every comparison of programs reads them here."""

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.check.baseline.programs import CHECKS
from jaxscope.model import metrics
from jaxscope.model.metrics import METRICS, TOLERANCE, ProgramMetrics, SavedMetrics

FIGURES = st.none() | st.dictionaries(st.sampled_from("abc"), st.integers(0, 1 << 40), max_size=3)


def test_a_baseline_checks_every_figure_that_its_file_keeps():
    assert set(CHECKS) == set(SavedMetrics.__struct_fields__) - {"arguments"}
    assert set(TOLERANCE) < set(CHECKS)


@given(FIGURES, FIGURES)
def test_figures_that_one_program_does_not_have_are_unknown_and_equal_ones_do_not_differ(x, y):
    for metric in (metrics.FUSIONS, metrics.LOOPS, metrics.CONSTANTS, metrics.MEMORY):
        before, after = SavedMetrics(**{metric.name: x}), ProgramMetrics(**{metric.name: y})
        found = metric.compare(before, after)
        assert (found is None) == (x is None or y is None)
        if found is not None:
            old, new = ({n: values.get(n, metric.missing) for n in {*x, *y}} for values in (x, y))
            different = {n for n in old if None not in (old[n], new[n]) and old[n] != new[n]}
            assert {d.what for d in found} == {metric.spelled.format(n) for n in different}
            assert all(d.worse in (None, d.after > d.before) and d.unit == metric.unit for d in found)


def test_a_figure_within_the_tolerance_does_not_differ():
    before, after = SavedMetrics(memory={"temp": 100}), ProgramMetrics(memory={"temp": 105, "peak": 400})
    assert metrics.MEMORY.compare(before, after, 0.05) == []
    (found,) = metrics.MEMORY.compare(before, after)
    assert (found.what, found.before, found.after, found.worse) == ("temp_bytes", 100, 105, True)


def test_what_a_file_keeps_of_a_program_compares_as_the_program_itself():
    program = ProgramMetrics(
        fusions={"total": 3},
        flops={"matrix": 8},
        memory={"temp": 4},
        unsaved_memory={"code": 9},
        cost={"flops": 9.0},
    )
    assert all(not m.compare(program.saved, program) for m in METRICS)
    assert not hasattr(program.saved, "cost") and program.used_bytes is None
