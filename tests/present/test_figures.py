"""Bytes, seconds, counts and lists as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.present import figures


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "?"), (0, "0 s"), (0.0001, "<1 ms"), (0.041, "41 ms"), (0.4, "0.40 s"), (0.9949, "0.99 s"), (0.996, "1.0 s"),
        (9.96, "10.0 s"), (28.13, "28.1 s"), (100.2, "100 s"), (119.6, "2 min 0 s"), (134, "2 min 14 s"),
        (7300, "2 h 1 min"), (math.nan, "?"), (math.inf, "?"),
    ],
)  # fmt: skip
def test_durations_have_three_figures_at_most(value, said):
    assert figures.seconds(value) == said


@given(st.floats())
def test_any_figure_has_a_wording(value):
    assert figures.seconds(value)


def test_counts_and_sizes():
    assert figures.count(1, "trace") == "1 trace"
    assert figures.count(12_000, "leaf", "leaves") == "12,000 leaves"
    assert (figures.count(1.0, "array"), figures.count(1 / 3, "array")) == ("1 array", "0.333 arrays")
    assert figures.size(812) == "812 B"
    assert figures.size(3.4 * 2**20) == "3.4 MiB"
    assert figures.size(2**50) == "1024.0 TiB"


def test_lists_end_in_and_and_long_ones_are_counted():
    assert figures.listed(["a"]) == "a"
    assert figures.listed(["a", "b", "c"]) == "a, b and c"
    assert figures.listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert figures.listed(["a", "b", "c"], 2, "functions") == "a, b and 1 more functions"
    assert figures.listed([]) == ""
