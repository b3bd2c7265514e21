"""What joins chips: how many links, how far a group reaches, and the least a collective takes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import interconnect, machines
from jaxscope.analysis.hlo.collectives import KINDS, Collective
from jaxscope.analysis.hlo.wire_bytes import wire_bytes
from jaxscope.analysis.interconnect import Links, Reach

MACHINES = machines.MACHINES


def collective(kind, result, n, axes=("x",), **more):
    """On one device, ``n`` in a group."""
    fields = {
        "kind": kind, "name": kind, "computation": "main", "is_async": False, "overlap": None, "bytes": result,
        "operand_bytes": None, "wire_bytes": wire_bytes(kind, result, n), "executions": 1, "axes": list(axes),
        "group_size": n, "groups": 1, "syntax": None, "origin": None, "op_name": None, "source": None,
    }  # fmt: skip
    return Collective(**{**fields, **more})


def seconds(name, kind, result, mesh, axes=None, everyone=True, machine=None):
    target = machines.parse(name)
    axes = [a for a, _ in mesh] if axes is None else axes
    over = interconnect.reach(target, axes, mesh)
    n = over.inside * over.parts if over else 4
    found = interconnect.load(
        machine or MACHINES[target.machine], target, collective(kind, result, n, axes), mesh, everyone
    )
    return None if found is None else found.seconds


@pytest.mark.parametrize(
    "machine, grid, links",
    [
        ("v5e", (16, 16), (4, 4, 4)),
        ("v5e", (8, 16), (3, 2 * 7 / 8 + 2, 4)),
        ("v5e", (4, 4), (2, 3, 4)),  # a corner, and 24 links between 16 chips
        ("v5e", (2, 2), (2, 2, 2)),
        ("v5e", (1, 1), (0, 0, 0)),
        ("v5p", (4, 4, 8), (6, 6, 6)),
        ("v5p", (2, 2, 4), (3, 1 + 1 + 1.5, 4)),
        ("v4", (2, 2, 1), (2, 2, 2)),
        ("h100", (2, 8), (1, 1, 1)),
    ],
)
def test_a_chip_has_fewer_links_where_the_torus_does_not_wrap_around(machine, grid, links):
    assert interconnect.links_of(MACHINES[machine], grid) == Links(*map(float, links))


@pytest.mark.parametrize("machine", ["v2", "v3", "tpu7x"])
def test_links_are_unknown_where_no_page_tells_which_slices_wrap_around(machine):
    assert interconnect.links_of(MACHINES[machine], (4, 4, 4)[: MACHINES[machine].axes]) is None


@pytest.mark.parametrize(
    "target, axes, mesh, found",
    [
        ("v5e:4x4", ["data"], [("data", 4), ("model", 4)], (4, 1)),
        ("2*v5e:4x4", ["data"], [("data", 8), ("model", 4)], (4, 2)),
        ("2*v5e:4x4", ["data:(1)2"], [("data", 8), ("model", 4)], (1, 2)),  # what goes from slice to slice
        ("2*v5e:4x4", ["data:(2)4"], [("data", 8), ("model", 4)], (4, 1)),  # what stays in one
        ("2*v5e:4x4", ["model"], [("data", 8), ("model", 4)], (4, 1)),
        ("2*v5e:4x4", ["slice", "model"], [("slice", 2), ("data", 4), ("model", 4)], (4, 2)),
        ("h100:4x8", ["data", "model"], [("data", 4), ("model", 8)], (8, 4)),
        ("h100:4x8", ["model"], [("data", 2), ("model", 16)], (8, 2)),
        (
            "h100:2x8",
            ["model"],
            [("data", 4), ("pipe", 1), ("model", 3)],
            None,
        ),  # some groups cross, some do not
        ("h100:2x8", ["?"], [("data", 16)], None),
        ("h100:2x8", ["data:(1)3"], [("data", 16)], None),
        ("h100:2x8", None, [("data", 16)], None),
        ("h100:2x8", ["data"], None, None),
    ],
)
def test_a_group_is_in_so_many_slices_or_hosts_with_so_many_members_in_each(target, axes, mesh, found):
    assert interconnect.reach(machines.parse(target), axes, mesh) == (
        None if found is None else Reach(*found)
    )


def test_each_kind_takes_its_time_over_the_links_of_a_torus():
    mesh, b = [("x", 16), ("y", 16)], 100_000_000  # a 16x16 of v5e: 4 links of 50 GB/s a chip
    share = 255 / 256 * b / 200e9
    assert seconds("v5e:16x16", "all-gather", b, mesh) == pytest.approx(share)
    assert seconds("v5e:16x16", "reduce-scatter", b // 256, mesh) == pytest.approx(share, rel=1e-3)
    assert seconds("v5e:16x16", "all-to-all", b, mesh) == pytest.approx(share)
    assert seconds("v5e:16x16", "all-reduce", b, mesh) == pytest.approx(2 * share)
    assert seconds("v5e:16x16", "collective-permute", b, mesh) == pytest.approx(b / 200e9)
    assert seconds("v5e:16x16", "ragged-all-to-all", b, mesh) is None


def test_the_corner_of_a_slice_without_wrap_around_has_half_the_links():
    mesh, b = [("x", 4), ("y", 4)], 1_600_000_000
    assert seconds("v5e:4x4", "all-gather", b, mesh) == pytest.approx(1.5e9 / 100e9)  # a corner has two links
    assert seconds("v5e:4x4", "all-reduce", b, mesh) == pytest.approx(
        3e9 / 150e9
    )  # all have three in the mean
    assert seconds("v5e:4x4", "collective-permute", b, mesh) == pytest.approx(
        b / 200e9
    )  # perhaps in the middle
    assert seconds("v5e:4x4", "all-gather", b, mesh, everyone=False) == pytest.approx(1.5e9 / 200e9)


def test_gpus_of_a_host_may_have_their_switch_reduce():
    b = 1_000_000_000
    found = seconds("h100:8", "all-reduce", b, [("data", 8)])
    assert found == pytest.approx(7 / 8 * b / 450e9)
    # Measured (NVIDIA/nccl-tests#212): 275 GB/s. Two passes over 450 GB/s would have been no bound of that.
    assert found < b / 275e9 < 1.001 * 2 * 7 / 8 * b / 450e9
    assert seconds("h100:8", "all-gather", b, [("data", 8)]) == found


def test_from_slice_to_slice_it_goes_over_the_network():
    mesh = [("data", 8), ("model", 4)]
    b = 3_125_000_000  # 25 Gbit/s a chip is 3.125 GB/s
    assert seconds("2*v5e:4x4", "send", b, mesh, ["data:(1)2"]) == pytest.approx(1)
    assert seconds("2*v5e:4x4", "all-gather", b, mesh, ["data"]) == pytest.approx(1 / 2 / 4)
    assert seconds("2*v5e:4x4", "all-reduce", b, mesh, ["data"]) == pytest.approx(2 / 2 / 4)
    assert seconds("2*v5e:4x4", "all-to-all", b, mesh, ["data"]) == pytest.approx(1 / 2)
    assert (
        seconds("2*v5e:4x4", "collective-permute", b, mesh, ["data"]) is None
    )  # which of them leave is not known
    assert seconds("2*v5e:4x4", "all-gather", b, mesh, ["data"], everyone=False) is None


def test_hosts_of_gpus_have_a_bound_where_their_network_is_stated():
    mesh, b = [("data", 16)], 50_000_000_000
    assert seconds("h100:2x8", "all-reduce", b, mesh) == pytest.approx(1 / 2 / 8)
    assert seconds("a100:2x8", "all-reduce", b, mesh) is None  # no page that was opened says
    assert seconds("a100:2x8", "all-reduce", b, [("x", 2), ("data", 8)], ["data"]) > 0


TARGETS = ["v5e:4x4", "v5e:16x16", "2*v5e:4x4", "4*v5p:4x4x4", "v4:2x2x1", "v3:4x4", "tpu7x:4x4x4", "h100:8", "h100:4x8", "a100:2x8", "v2:4x4"]  # fmt: skip


@st.composite
def cases(draw):
    target = machines.parse(draw(st.sampled_from(TARGETS)))
    left, mesh = target.devices, []
    for name in "abc":
        size = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        mesh.append((name, size))
        left //= size
    mesh.append(("d", left))
    axes = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True))
    kind, everyone = draw(st.sampled_from(sorted(KINDS))), draw(st.booleans())
    return target, mesh, sorted(axes), kind, everyone


@given(cases(), st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.floats(1, 1000))
def test_more_bytes_take_no_less_time_and_faster_links_no_more(case, one, other, factor):
    target, mesh, axes, kind, everyone = case
    n = 1
    for name, size in mesh:
        n *= size if name in axes else 1
    machine = MACHINES[target.machine]

    def load(result, machine=machine):
        return interconnect.load(machine, target, collective(kind, result, n, axes), mesh, everyone)

    few, many = (load(b) for b in sorted((one, other)))
    if many is None:
        assert few is None or few.seconds == 0  # where nothing is sent, that is known
        return
    assert 0 <= few.seconds <= many.seconds
    faster = msgspec.structs.replace(
        machine,
        link=machine.link and msgspec.structs.replace(machine.link, value=machine.link.value * factor),
        network=machine.network and msgspec.structs.replace(machine.network, value=machine.network.value * factor),
    )  # fmt: skip
    assert load(one, faster).seconds <= load(one).seconds
    assert load(one, faster).seconds * factor == pytest.approx(load(one).seconds)


@given(cases(), st.integers(1, 1 << 50))
def test_without_a_stated_rate_there_is_no_bound(case, result):
    target, mesh, axes, kind, everyone = case
    bare = msgspec.structs.replace(MACHINES[target.machine], link=None, network=None)
    found = interconnect.load(bare, target, collective(kind, result, 4, axes), mesh, everyone)
    assert found is None or found.seconds == 0  # nothing is sent


@given(st.lists(st.text("ab:()0123456789?,", max_size=12), max_size=3), st.lists(st.tuples(st.text("ab", max_size=2), st.integers(-3, 40)), max_size=3))  # fmt: skip
def test_any_axes_and_any_mesh_of_a_damaged_log_are_read(axes, mesh):
    for name in TARGETS:
        found = interconnect.reach(machines.parse(name), axes, mesh)
        assert found is None or (found.inside >= 1 and found.parts >= 1)
