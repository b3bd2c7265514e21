"""Time in which at least one phase ran: whatever order spans come in, nothing counts twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.model.intervals import OwnSeconds, UnionOfSpans

spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


def moments(pairs):
    return {t for begin, end in pairs for t in range(begin, end)}


@given(spans, spans)
def test_spans_in_any_order_are_counted_once(known, unfinished):
    found = UnionOfSpans(known)
    assert found.with_spans([]) == len(moments(known))
    assert found.with_spans(unfinished) == len(moments([*known, *unfinished]))
    assert found.with_spans([]) == len(moments(known)), "asking adds nothing"


def test_nested_phases_are_one_part_of_the_union():
    found = UnionOfSpans()
    for begin, end in [(10, 20), (12, 14), (30, 31), (5, 40), (50, 60)]:
        found.add(begin, end)
    assert (found._begins, found._ends) == ([5, 50], [40, 60])


def test_a_phase_counts_without_those_inside_it_and_threads_do_not_mix():
    found, second = OwnSeconds(), 1_000_000_000
    assert found.own_seconds(1, 1, 30 * second, 5.0) == 5.0
    assert found.own_seconds(1, 2, 40 * second, 6.0) == 6.0
    assert found.own_seconds(2, 3, 45 * second, 30.0) == 30.0
    assert found.own_seconds(1, 4, 50 * second, 40.0) == 29.0
    assert found.own_seconds(1, 5, 60 * second, 10.1) == 10.1, "it overlaps only as clocks differ"
    assert found.own_seconds(1, 5, 60 * second, 20.0) == 20.0, "phases of one call are not inside each other"
