"""A fingerprint of a value: it differs from that of another value, and does not keep the value alive."""

import weakref

import numpy as np
import pytest

from jaxscope.capture.closures.fingerprint import Mark


class Plain:
    """Weakly referenced."""


class Unequal:
    def __eq__(self, other):
        raise AssertionError("compared")

    __hash__ = __repr__ = __bool__ = __eq__


@pytest.mark.parametrize(
    ("before", "equal", "other"),
    [
        (2.0, float("2.0"), 3.0),
        (1, int("1"), True),
        (1, int("1"), 1.0),
        (float("nan"), float("nan"), 0.0),
        ("text", "".join(["te", "xt"]), "other"),
        ("t" * 5000, "".join(["t"] * 5000), "u" * 5000),
        (None, None, 0),
        (np.float32(2), np.float32(2), np.float64(2)),
        (np.ones(3), np.ones(3), np.zeros(3)),
        (np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 2))),
        ({"a": 1}, {"a": 2}, {"b": 1}),
        ([1, 2], [3, 4], [1]),
        ({1, 2}, {2, 1}, {1, 3}),
        (np.dtype("f4"), np.dtype("float32"), np.dtype("f8")),
    ],
    ids=str,
)
def test_equal_values_are_the_same_and_others_are_not(before, equal, other):
    mark = Mark(before)
    assert mark.same(before) and mark.same(equal) and not mark.same(other)


def test_objects_are_compared_by_identity_and_none_of_their_code_runs():
    value, other = Unequal(), Unequal()
    mark = Mark(value)
    assert mark.same(value) and not mark.same(other) and not mark.same(None)


def test_what_is_in_an_array_is_seen_to_change():
    array = np.ones(4)
    mark = Mark(array)
    assert mark.contents(array)
    array[1] = 2
    assert not mark.contents(array) and mark.ref() is array


@pytest.mark.parametrize(
    "array",
    [np.ones(300_000), np.array([object()]), np.ones((4, 4))[::2, ::2], np.array([]), np.array(3.0),
     np.zeros(2, [("a", "f4"), ("b", "i4")]), np.array(["a", "b"]), np.array(["2020-01-01"], "M8[D]")],
    ids=lambda a: f"{a.dtype}{a.shape}",
)  # fmt: skip
def test_any_array_can_be_marked(array):
    mark = Mark(array)
    assert mark.same(array) and mark.contents(array) and mark.text
    assert (mark.crc is None) == (array.nbytes > 1 << 20 or array.dtype.hasobject)


def test_a_mark_keeps_nothing_alive():
    for make in (Plain, lambda: np.ones(3), lambda: lambda: 1, lambda: {1, 2}):
        value = make()
        mark, ref = Mark(value), weakref.ref(value)
        del value
        assert ref() is None and mark.text


def test_a_function_defined_again_by_the_same_code_is_the_same():
    def make(k):
        return lambda x: x + k

    assert Mark(make(1)).same(make(2)), "what it closes over is looked at by itself"
    assert not Mark(make(1)).same(lambda x: x)
    first, second = (lambda x, k=k: x + k for k in (1, 2))
    assert not Mark(first).same(second)
