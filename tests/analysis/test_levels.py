"""Which cache a difference misses, and which earlier key a miss is compared with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keys_by_hand import (
    CPU1,
    EXPLICIT,
    RESPELLED,
    REVERSED,
    SPLIT,
    WHOLE,
    any_key,
    array,
    key,
    numpy,
    on_mesh,
)
from msgspec.structs import replace

from jaxscope.analysis import sharding
from jaxscope.analysis.keys import flatten
from jaxscope.analysis.levels import (  # fmt: skip
    COMPILE,
    FAST_PATH,
    LEVELS,
    LOWER,
    TRACE,
    distance,
    nearest,
    rank,
    reached_level,
    sharding_level,
)
from jaxscope.schema.keys import Static


def near(k, earlier, level=TRACE):
    found = nearest(flatten(k), [flatten(e) for e in reversed(earlier)], level)
    return None if found is None else len(earlier) - 1 - found


def test_the_level_is_the_first_cache_that_missed():
    assert reached_level(["traced", "lowered", "compiled"]) == TRACE
    assert reached_level(["lowered", "compiled"]) == LOWER
    assert reached_level(["compiled"]) == COMPILE
    assert reached_level(["fast_path"]) == FAST_PATH
    assert reached_level([], "trace") == TRACE, "a trace that failed"


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [(SPLIT, WHOLE, LOWER), (SPLIT, RESPELLED, FAST_PATH), (SPLIT, REVERSED, COMPILE), (CPU1, SPLIT, TRACE)],
)
def test_shardings_are_distinguished_by_different_caches(a, b, level):
    assert sharding_level(a, b) == level


@pytest.mark.parametrize("recorded", [True, False], ids=["as data", "as text in an older log"])
@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        ("P('d',)", "P('d', None)", FAST_PATH),
        ("P(None, 'd')", "P('d',)", TRACE),
        ("P(UNCONSTRAINED,)", "P()", TRACE),
        ("P(unreduced={'d'})", "P()", TRACE),
        ("P(unreduced={'d'}, unreduced_kind=sum)", "P(unreduced={'d'}, unreduced_kind=max)", TRACE),
        ("P(reduced={'d'})", "P(unreduced={'d'})", TRACE),
    ],
)
def test_over_explicit_axes_a_partition_spec_is_part_of_the_trace(a, b, level, recorded):
    one, other = (on_mesh(spec, EXPLICIT) for spec in (a, b))
    if recorded:
        one, other = (replace(s, partition=sharding.parse(s.spec)) for s in (one, other))
    assert sharding_level(one, other) == level


def test_partition_specs_that_cannot_be_read_are_compared_as_text():
    a, b = on_mesh("Q('d')", EXPLICIT), on_mesh("Q('z')", EXPLICIT)
    assert sharding_level(a, b) == TRACE


def test_the_nearest_key_has_the_fewest_differing_facts():
    far = key(array("x", (8,)), array("y", (8,), "int32"))
    close = key(array("x", (4,)), array("y", (8,)))
    assert near(key(array("x", (4,)), array("y", (9,))), [far, close, far]) == 1


def test_of_equally_near_keys_the_latest_is_taken():
    a, b = key(array("x", (1,))), key(array("x", (2,)))
    assert near(key(array("x", (3,))), [a, b]) == 1
    assert near(a, [a, b, a, b]) == 2
    assert near(a, []) is None


def test_an_earlier_object_that_looks_the_same_is_nearer_than_a_later_one_of_another_value():
    def config(n, serial):
        text = f"<Cfg k={n}>"
        return key(static=[Static("cfg", text, "Cfg", "identity", serial, hash=serial)])

    assert near(config(1, 3), [config(1, 1), config(2, 2)]) == 0
    assert near(config(3, 3), [config(1, 1), config(2, 2)]) == 1, "the latest of equals"

    def size(text, kind, hashed):
        return key(static=[Static("n", text, kind, "value", hash=hashed)])

    ten = size("np.int64(10)", "numpy.int64", 10)
    assert near(ten, [size("10", "int", 10), size("30", "int", 30)]) == 0, "only the type differs"


def test_every_container_that_differs_counts_and_a_leaf_that_became_none_once():
    was = key(array("t['a']"), nodes={"t": "dict"}, tree="{'a': *}")
    between = key(array("t[0]"), nodes={"t": "tuple"}, tree="(*,)")
    gone = key(nodes={"t": "dict", "t['a']": "None"}, tree="{'a': None}")
    assert near(gone, [was, between]) == 0
    assert distance(flatten(was), flatten(gone))[TRACE] == 2, "the leaf, and the text of the tree"


def test_a_key_that_differs_in_the_trace_did_not_serve_a_call_that_was_not_traced():
    uncommitted = key(array("x", (4,), committed=False))
    other_shape = key(array("x", (8,)))
    assert near(key(array("x", (4,))), [uncommitted, other_shape], LOWER) == 0
    assert near(key(array("x", (4,))), [uncommitted, other_shape], TRACE) == 1


def test_keys_of_the_same_function_object_come_first():
    mine, other = key(array("x", (8,)), function_object=2), key(array("x", (4,)), function_object=1)
    assert near(key(array("x", (4,)), function_object=2), [mine, other]) == 0
    assert near(key(array("x", (4,)), function_object=3), [mine, other]) == 1


def test_a_numpy_argument_is_one_fact_of_the_fast_path():
    assert distance(flatten(key(array("x", committed=False))), flatten(key(numpy("x")))) == {
        TRACE: 0, LOWER: 0, COMPILE: 0, FAST_PATH: 1}  # fmt: skip


@given(any_key, st.lists(any_key, min_size=1, max_size=5), st.sampled_from(LEVELS))
def test_no_earlier_key_is_nearer_than_the_nearest(k, earlier, level):
    index = near(k, earlier, level)
    same = [e for e in earlier if None in (e.function_object, k.function_object) or e.function_object == k.function_object]  # fmt: skip
    ranks = [rank(flatten(e), flatten(k), level) for e in same or earlier]
    assert rank(flatten(earlier[index]), flatten(k), level) == min(ranks)


@given(any_key)
def test_a_key_is_at_no_distance_from_itself(k):
    assert not any(distance(flatten(k), flatten(k)).values())
