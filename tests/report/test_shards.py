"""Which device holds which slice, drawn as the mesh."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.report.shards import drawing
from jaxscope.schema.keys import Sharding


def named(spec, devices="0-7", **mesh):
    axes = [(name, size, "Auto") for name, size in mesh.items()]
    return Sharding("NamedSharding", f"{spec} on mesh", devices, axes, spec, "device")


def drawn(sharding, shape):
    return [line.text.plain.rstrip() for line in drawing(sharding, shape)]


def test_the_axes_of_a_mesh_are_rows_and_columns():
    assert drawn(named("P('data', 'model')", data=4, model=2), (8, 6)) == [
        "        model 0       model 1",
        "data 0  0 [0:2, 0:3]  1 [0:2, 3:6]",
        "data 1  2 [2:4, 0:3]  3 [2:4, 3:6]",
        "data 2  4 [4:6, 0:3]  5 [4:6, 3:6]",
        "data 3  6 [6:8, 0:3]  7 [6:8, 3:6]",
    ]


def test_three_axes_are_reported_in_the_order_of_the_mesh():
    assert drawn(named("P(('c', 'a'),)", "7,6,5,4,3,2,1,0", a=2, b=2, c=2), (8,)) == [
        "          c 0      c 1",
        "a 0, b 0  7 [0:2]  6 [4:6]",
        "a 0, b 1  5 [0:2]  4 [4:6]",
        "a 1, b 0  3 [2:4]  2 [6:8]",
        "a 1, b 1  1 [2:4]  0 [6:8]",
    ]


def test_one_axis_and_no_mesh_are_a_row_for_each_device():
    assert drawn(named("P('data',)", "0-1", data=2), (3,)) == ["data 0  0 [0:2]", "data 1  1 [2:3]"]
    tiles = Sharding("GSPMDSharding", "GSPMDSharding({devices=[2]<=[2]})", "0-1", None, None, "device")
    assert drawn(tiles, (4,)) == ["0 [0:2]", "1 [2:4]"]


@pytest.mark.parametrize(
    "sharding",
    [
        Sharding("SingleDeviceSharding", "cpu:0", "0"),
        Sharding("New", "New(?)", "0-7"),
        named("P('other',)", data=8),
    ],
)
def test_what_is_on_one_device_or_is_not_known_is_not_drawn(sharding):
    assert drawn(sharding, (8,)) == []


def test_a_pod_is_cut_and_says_so():
    lines = drawn(named("P('data', 'model')", "0-1023", data=64, model=16), (64, 16))
    assert len(lines) == 34 and lines[-1] == "1,024 devices: not all are shown"
    assert "\x1b" not in "".join(drawn(named("P('\x1b[31m',)", "0-1", **{"\x1b[31m": 2}), (2,)))


@given(st.text(max_size=20), st.text(max_size=10), st.lists(st.integers(0, 3), max_size=3))
def test_no_sharding_is_too_odd(spec, devices, shape):
    drawn(named(spec, devices, data=2, model=1), shape)
