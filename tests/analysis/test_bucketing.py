"""Sizes to pad to."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.bucketing import MOST, choices


def padding(observed, sizes):
    return sum(n * (min(b for b in sizes if b >= s) - s) for s, n in observed.items())


def test_one_size_pads_everything_to_the_largest_and_all_sizes_pad_nothing():
    found = choices({10: 1, 20: 3, 40: 1})
    assert [c.sizes for c in found] == [[40], [20, 40], [10, 20, 40]]
    assert [c.compilations for c in found] == [1, 2, 3]
    assert [round(c.padding_share, 3) for c in found] == [round(90 / 200, 3), round(10 / 120, 3), 0.0]


def test_nothing_observed_offers_nothing_and_size_zero_is_a_size():
    assert choices({}) == []
    assert choices({0: 2})[0].padding_share == 0.0


@given(st.dictionaries(st.integers(0, 40), st.integers(1, 5), min_size=1, max_size=7))
def test_no_other_set_of_as_many_sizes_pads_less(observed):
    for choice in choices(observed):
        best = min(
            padding(observed, sizes)
            for sizes in itertools.combinations(sorted(observed), choice.compilations)
            if max(sizes) == max(observed)
        )
        assert padding(observed, choice.sizes) == best
        total = sum(s * n for s, n in observed.items()) + best
        assert abs(choice.padding_share - (best / total if total else 0.0)) < 1e-9


def test_thousands_of_sizes_are_no_trouble():
    found = choices(dict.fromkeys(range(1, 5000), 1))
    assert len(found) == MOST and found[-1].sizes[-1] == 4999
