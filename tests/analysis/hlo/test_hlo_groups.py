"""The five spellings of groups, and the axes they run along."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxscope.analysis.hlo import axes, groups


def sets(text):
    found = groups.parse(text)
    return None if found is None else sorted(map(sorted, found.members))


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{{0,2},{1,3}}", [[0, 2], [1, 3]]),
        ("{{0,2}, {1,3}}", [[0, 2], [1, 3]]),
        ("{}", []),
        ("{{0}}", [[0]]),
        ("[2,4]<=[8]", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("[2,4]<=[4,2]T(1,0)", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("[4,2]<=[2,2,2]T(0,2,1)", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("[1,8]<=[8]", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("mesh['a'=4,'b'=2] {'b'}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("mesh['a'=4,'b'=2] {'a','b'}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("mesh[a=4,b=2] {a}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("@mesh<a=4,b=2> {a}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("mesh['a'=8] {'a':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("mesh['a'=8] {'a':(1)2,'a':(4)2}", [[0, 1, 4, 5], [2, 3, 6, 7]]),
        ("mesh['a'=6] {'a':(3)2}", [[0, 1], [2, 3], [4, 5]]),
        ("mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] {'axis_2'}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("mesh['x'=2,'y'=2], device_ids=(3,1,0,2) {'x'}", [[0, 3], [1, 2]]),
        ("mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
    ],
)
def test_groups_are_read_in_every_spelling(text, members):
    assert sets(text) == members


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "{{0,1}",
        "[2,4]<=[7]",
        "[2,4]",
        "[2,4]<=[4,2]T(0,0)",
        "[2,4]<=[4,2]T(1,2)",
        "[1000000,1000000]<=[1000000000000]",
        "[99999999,99999999]<=[99999999,99999999]",
        "mesh['a'=4] {'b'}",
        "mesh['a'=4] {'a':(3)2}",
        "mesh['a'=8] {'a':(1)4,'a':(2)2}",
        "mesh['a'=999999999,'b'=999999999] {'a'}",
        "mesh['a'=2], device_ids=(0,1,2) {'a'}",
        "mesh['a'=4,'a'=2] {'a'}",
        "mesh[] {}",
    ],
)
def test_groups_that_make_no_sense_are_unknown(text):
    assert groups.parse(text) is None


def test_only_names_of_the_users_name_a_mesh():
    assert groups.parse("mesh['a'=4,'b'=2] {'b'}").mesh == [("a", 4), ("b", 2)]
    assert groups.parse("mesh['axis_0'=4,'b'=2] {'b'}").mesh is None
    assert groups.parse("mesh['x'=2,'y'=2], device_ids=(3,1,0,2) {'x'}").mesh is None


def test_pairs_are_read():
    assert groups.pairs("{{0,1},{1,2},{2,0}}").members == [(0, 1), (1, 2), (2, 0)]
    assert groups.pairs("{}").members == []
    assert groups.pairs("{{0,1,2}}") is None


def positions(text, replicas, partitions, **how):
    mode = {"has_channel": False, "global_ids": False, "partition_ids": False, **how}
    found = groups.positions(groups.parse(text), replicas=replicas, partitions=partitions, **mode)
    return None if found is None else sorted(map(sorted, found))


def test_what_the_numbers_of_a_group_mean_depends_on_channel_and_flag():
    everybody = [[0, 1, 2, 3]]
    # Positions, with use_global_device_ids.
    assert positions("{{0,1},{2,3}}", 1, 4, has_channel=True, global_ids=True) == [[0, 1], [2, 3]]
    assert positions("{}", 1, 4, has_channel=True, global_ids=True) == everybody
    # Replicas, without a channel: one group for each partition.
    assert positions("{{0,1}}", 2, 2) == [[0, 2], [1, 3]]
    assert positions("{}", 4, 1) == everybody
    # Replicas with all their partitions, with a channel.
    assert positions("{{0},{1}}", 2, 2, has_channel=True) == [[0, 1], [2, 3]]
    # Partitions, for an all-to-all with a channel.
    assert positions("{{0,1},{2,3}}", 1, 4, has_channel=True, partition_ids=True) == [[0, 1], [2, 3]]
    # Nobody knows how many devices there are: a text without its header.
    assert positions("{}", 0, 0) is None
    assert positions("{{0,1}}", 0, 0) == [[0, 1]]


MESH = [("data", 8), ("seq", 3), ("model", 6)]


@pytest.mark.parametrize(
    ("members", "mesh", "expected"),
    [
        ([[0, 1], [2, 3]], [("a", 2), ("b", 2)], ["b"]),
        ([[0, 2], [1, 3]], [("a", 2), ("b", 2)], ["a"]),
        ([[0, 1, 2, 3]], [("a", 2), ("b", 2)], ["a", "b"]),
        ([[0], [1], [2], [3]], [("a", 2), ("b", 2)], []),
        ([[0, 3], [1, 2]], [("a", 2), ("b", 2)], None),  # a diagonal is no axis
        ([[0, 4], [1, 5], [2, 6], [3, 7]], [("a", 8)], ["a:(1)2"]),
        ([[0, 2], [1, 3], [4, 6], [5, 7]], [("a", 8)], ["a:(2)2"]),
        ([[0, 1, 4, 5], [2, 3, 6, 7]], [("a", 8)], ["a:(1)2", "a:(4)2"]),
        ([[0, 1, 2], [3, 4, 5]], [("a", 6)], ["a:(2)3"]),
        ([[0, 2, 4], [1, 3, 5]], [("a", 6)], ["a:(1)3"]),
        ([[0, 1], [2, 3], [4, 5]], [("a", 6)], ["a:(3)2"]),
        ([[0, 1], [2, 3]], [("a", 4), ("b", 2)], ["b"]),  # one slice of two
        ([[0, 2], [1, 3]], [("a", 4), ("b", 2)], ["a:(2)2"]),
        ([[0, 9]], [("a", 8)], None),
        ([[0, 7], [1, 6], [2, 5], [3, 4]], [("a", 8)], None),  # axis_index_groups
        ([[0, 1, 2], [3, 4, 5]], [("a", 8)], None),
        ([[0, 1]], [("one", 1), ("a", 2)], ["a"]),
    ],
)
def test_axes_are_the_smallest_set_that_makes_the_groups(members, mesh, expected):
    assert axes.of_groups(members, mesh) == expected


def test_a_permute_runs_along_the_axes_whose_coordinate_changes():
    mesh = [("a", 4), ("b", 2)]
    assert axes.of_pairs([(0, 2), (2, 4), (4, 6), (6, 0)], mesh) == ["a"]
    assert axes.of_pairs([(0, 0), (1, 1)], mesh) == []
    assert axes.of_pairs([(0, 3)], mesh) == ["a", "b"]


@settings(max_examples=60)
@given(st.sets(st.integers(0, 5), max_size=4), st.randoms(use_true_random=False))
def test_any_set_of_sub_axes_is_found_again(chosen, random):
    """Groups made from prime digits of a mesh give these digits back, whatever their order."""
    digits = [(name, f) for name, size in MESH for f in axes.prime_factors(size)]
    strides = [math.prod(f for _, f in digits[i + 1 :]) for i in range(len(digits))]

    def span(numbers):
        return [
            sum(c * strides[i] for c, i in zip(coords, numbers, strict=True))
            for coords in itertools.product(*(range(digits[i][1]) for i in numbers))
        ]

    inside = span(sorted(chosen))
    members = [[s + i for i in inside] for s in span([i for i in range(len(digits)) if i not in chosen])]
    for group in members:
        random.shuffle(group)
    random.shuffle(members)
    found = axes.of_groups(members, MESH)
    # The size of what is named is the size of a group: nothing is missing and nothing is too much.
    sizes = dict(MESH)
    named = [sizes[a] if ":" not in a else int(a.rpartition(")")[2]) for a in found]
    assert math.prod(named) == len(inside)
    assert {a.partition(":")[0] for a in found} == {digits[i][0] for i in chosen}
