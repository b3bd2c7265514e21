"""Meshes, specs and XLA's tile lists: which device holds which part, how often, with how much padding."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import sharding as sh
from jaxscope.analysis import sharding_audit
from jaxscope.analysis.stablehlo.shardings import Mesh, spec
from jaxscope.present.render import text as words
from jaxscope.schema.keys import Partition, Sharding


def named(spec, devices="0-7", **mesh):
    axes = [(name, size, "Auto") for name, size in mesh.items()]
    return Sharding("NamedSharding", f"{spec} on mesh", devices, axes, spec, "device")


def test_a_lowered_program_names_the_axes_over_which_a_value_is_still_to_be_summed():
    meshes = {"mesh": Mesh("mesh", (("d", 8),))}
    asked = spec('#sdy.sharding<@mesh, [{}, {}], unreduced={"d"}>', meshes)
    assert asked.text == "P(None, None, unreduced={'d'})"
    requested = sharding_audit.of_spec(asked, "0-7", None)
    given = named("P(None, None, unreduced={'d'})", d=8)
    assert sharding_audit.same(requested, given, 2) and not sharding_audit.same(named("P()", d=8), given, 2)
    assert words(sharding_audit.spelled(given, 2)) == "P(None, None, unreduced={'d'})"  # not "replicated"


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("PartitionSpec('a', None)", Partition((("a",), ())), "P('a')"),
        ("P(('a', 'b'), None, 'c')", Partition((("a", "b"), (), ("c",))), "P(('a', 'b'), None, 'c')"),
        ("P(UNCONSTRAINED, 'a')", Partition((None, ("a",))), "P(UNCONSTRAINED, 'a')"),
        ("P()", Partition(), "P()"),
        (
            "P(None, unreduced={'c', 'b'}, reduced=frozenset({'a'}))",
            Partition(((),), ("b", "c"), ("a",)),
            "P(None, unreduced={'b', 'c'}, reduced={'a'})",
        ),
        (
            "P('a', unreduced={'c'}, unreduced_kind=sum)",
            Partition((("a",),), ("c",), (), "sum"),
            "P('a', unreduced={'c'})",
        ),
        (
            "P('a', unreduced={'c'}, unreduced_kind=max)",
            Partition((("a",),), ("c",), (), "max"),
            "P('a', unreduced={'c'}, unreduced_kind=max)",
        ),
        ("P(x + 1)", None, None),
        ("Q('a')", None, None),
        ("P('a'", None, None),
        (None, None, None),
    ],
)
def test_the_text_of_a_partition_spec_is_read(text, expected, shown):
    assert sh.parse(text) == expected
    assert expected is None or sh.written(expected) == shown


def test_the_data_of_a_partition_spec_is_used_rather_than_its_text():
    both = msgspec.structs.replace(named("of a later JAX", data=8), partition=Partition((("data",),)))
    assert sh.layout(both, 2).parts == (8, 1)
    assert sh.split_axes(both) == ([("data",)], frozenset())
    assert words(sharding_audit.spelled(both, 2)) == "P('data')"
    open_ = msgspec.structs.replace(both, partition=Partition((None,)))
    assert sh.split_axes(open_) is None


def tiled(text, devices="0-7"):
    return Sharding("GSPMDSharding", f"GSPMDSharding({{{text}}})", devices, None, None, "device")


@pytest.mark.parametrize(
    ("sharding", "shape", "shard", "copies"),
    [
        (named("P('data',)", data=8), (64, 16), (8, 16), 1),
        (named("P()", data=8), (64, 16), (64, 16), 8),
        (named("P(None, 'model')", data=4, model=2), (16, 32), (16, 16), 4),
        (named("P('data', 'model')", data=4, model=2), (16, 8), (4, 4), 1),
        (named("P(('data', 'model'), None)", data=4, model=2), (16, 8), (2, 8), 1),
        (named("P('data',)", data=8), (17, 4), (3, 4), 1),
        (named("P(None, 'model')", data=4, model=2), (2, 3), (2, 2), 4),
        (named("P(None, unreduced={'data'})", data=4, model=2), (4, 4), (4, 4), 2),
        (Sharding("SingleDeviceSharding", "cpu:3", "3"), (5,), (5,), 1),
        (tiled("devices=[4,2]<=[8]"), (8, 8), (2, 4), 1),
        (tiled("devices=[8,1]<=[8]"), (17, 4), (3, 4), 1),
        (tiled("devices=[4,1,2]<=[8] last_tile_dim_replicate"), (8, 8), (2, 8), 2),
        (tiled("devices=[2,2]0,2,1,3", "0-3"), (4, 4), (2, 2), 1),
        (tiled("replicated"), (8, 8), (8, 8), 8),
        (named("P()", data=8), (), (), 8),
    ],
)
def test_shards_and_copies(sharding, shape, shard, copies):
    found = sh.layout(sharding, len(shape))
    assert sh.shard_shape(shape, found.parts) == shard
    assert found.replication == copies


def test_devices_in_another_order_hold_the_parts_in_that_order():
    cells = sh.cells(named("P('data',)", "3,1,2,0", data=4), (8,))
    assert [(c.device, c.slices) for c in cells] == [
        (3, ((0, 2),)),
        (1, ((2, 4),)),
        (2, ((4, 6),)),
        (0, ((6, 8),)),
    ]
    # XLA: arange(8).reshape(4, 2).transpose(1, 0) gives 0 2 4 6 1 3 5 7
    cells = sh.cells(tiled("devices=[8]<=[4,2]T(1,0)"), (8,))
    assert [c.device for c in sorted(cells, key=lambda c: c.slices)] == [0, 2, 4, 6, 1, 3, 5, 7]


def test_parts_that_do_not_go_round_end_where_the_array_ends():
    cells = sh.cells(named("P('data',)", data=8), (17,))
    assert [c.slices[0] for c in cells] == [
        (0, 3),
        (3, 6),
        (6, 9),
        (9, 12),
        (12, 15),
        (15, 17),
        (17, 17),
        (17, 17),
    ]


def test_a_mesh_has_its_devices_by_coordinates():
    grid = sh.grid(named("P()", "8-15", data=4, model=2))
    assert grid.axes == (("data", 4), ("model", 2))
    assert grid.devices == (*range(8, 16),)


def test_axes_an_array_is_not_split_over_are_named():
    assert sh.missing_axes(named("P(None, 'model')", data=4, model=2)) == [("data", 4)]
    assert sh.missing_axes(named("P(('model', 'data'),)", data=4, model=2)) == []
    assert sh.missing_axes(named("P()", "0", data=1)) == []


@pytest.mark.parametrize(
    "sharding",
    [
        named("P('other',)", data=8),
        named("P('data', 'data')", data=8),
        named("P('data', None, None)", data=8),
        named("P(UNCONSTRAINED,)", data=8),
        named("__import__('os').system('true')", data=8),
        named("P(" + "(" * 5000, data=8),
        named("P('data',)", "0-3", data=8),
        named("P('data',)", None, data=8),
        named("P('data',)", "0-999999999", data=8),
        named("P('data',)", "7-0", data=8),
        named("P()", data=0),
        tiled("devices=[3,1]<=[8]"),
        tiled("devices=[8,1]<=[8]T(0,1)"),
        tiled("devices=[8,1]0,0,0,0,0,0,0,0"),
        tiled("devices=[99999999,99999999]<=[99999999,99999999]"),
        tiled("manual"),
        Sharding("New", "New(what is this)", "0-7"),
        Sharding("SingleDeviceSharding", "cpu:?", ""),
    ],
)
def test_what_cannot_be_read_is_not_known(sharding):
    assert sh.layout(sharding, 2) is None and sh.cells(sharding, (8, 8)) is None


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 4))
def test_no_text_is_too_odd(spec, devices, rank):
    sh.layout(named(spec, devices, data=2), rank)
    sh.layout(tiled(spec, devices), rank)
    sh.missing_axes(named(spec, devices, data=2))


AXES = st.permutations(["a", "b", "c"])


@given(
    AXES,
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.permutations(range(12)),
    st.tuples(*[st.integers(1, 9)] * 3),
)
def test_every_element_is_held_by_as_many_devices_as_there_are_copies(axes, splits, order, shape):
    """Axes are dealt out to dimensions 0..2, or to none (3)."""
    dims = [tuple(a for a, d in zip(axes, splits, strict=True) if d == at) for at in range(3)]
    s = named(f"P{tuple(dims)!r}", ",".join(map(str, order)), a=2, b=3, c=2)
    found, cells = sh.layout(s, 3), sh.cells(s, shape)
    assert sorted(c.device for c in cells) == [*range(12)]
    held = sum(math.prod(high - low for low, high in c.slices) for c in cells)
    assert held == math.prod(shape) * found.replication
    assert math.prod(found.parts) * found.replication == 12
