"""Times that no run can beat, from peak rates."""

import pytest

from jaxscope.analysis import bounds, machines

V5E, V5P = machines.parse("v5e:4x4"), machines.parse("v5p:8x8x8")
MESH = [("data", 4), ("model", 4)]


def of(target, flops=None, arguments=0, results=0, wire=(), mesh=MESH):
    return bounds.of_program(target, flops, arguments, results, dict(wire), mesh)


def test_each_bound_is_an_amount_over_a_stated_rate():
    found = of(V5E, {"bf16": 197 * 10**9}, 819_000, 0, {"data": 200_000, "model": 400_000})
    assert found.compute == pytest.approx(1e-3) and found.memory == pytest.approx(1e-6)
    assert found.axes == {"data": pytest.approx(1e-6), "model": pytest.approx(2e-6)}  # four links of 50 GB/s
    assert (found.least, found.binds) == (found.compute, "compute")


def test_what_binds_is_the_largest_that_is_known():
    assert of(V5E, None, 0, 819_000_000, {"data": 1}).binds == "memory"
    assert of(V5E, {"bf16": 1}, 0, 0, {"model": 10**9}).binds == "model"
    nothing = bounds.of_program(V5E, None, None, None, {}, None)
    assert (nothing.least, nothing.binds) == (None, None)


def test_an_element_type_takes_the_fastest_rate_the_machine_may_use_for_it():
    h100 = machines.parse("h100:8")
    assert of(V5E, {"f32": 197 * 10**12}).compute == pytest.approx(1)  # one pass of bf16
    assert of(h100, {"f32": 4945 * 10**11}).compute == pytest.approx(1, rel=1e-3)  # tf32
    assert of(h100, {"f64": 669 * 10**11}).compute == pytest.approx(1, rel=1e-3)
    assert of(V5P, {"s8": 918 * 10**12}).compute == pytest.approx(1)
    assert of(V5E, {"f8e5m2": 197 * 10**12}).compute == pytest.approx(1)  # has no fp8 of its own


@pytest.mark.parametrize("flops", [{"f64": 1}, {"mixed": 1}, {"bf16": 1, "s4": 1}, None])
def test_flops_without_a_stated_rate_make_the_bound_unknown_not_smaller(flops):
    assert of(V5E, flops).compute is None


def test_a_device_is_half_of_a_chip_with_two():
    tpu7x = machines.parse("tpu7x:2x2x1")
    assert of(tpu7x, {"bf16": 2307 * 10**12}).compute == pytest.approx(2)
    assert of(tpu7x, None, 7_380_000_000_000).memory == pytest.approx(2)


def test_an_axis_that_may_leave_a_slice_or_a_host_has_no_bound_from_links():
    two = machines.parse("2*v5e:4x4")
    mesh = [("data", 8), ("model", 4)]
    found = of(two, None, 0, 0, {"data": 1000, "model": 1000, "data:(2)4": 1, "?": 1}, mesh)
    assert found.axes["model"] is not None
    assert found.axes["data"] is None and found.axes["data:(2)4"] is None and found.axes["?"] is None
    hosts = machines.parse("h100:2x8")
    assert bounds.within(hosts, "model", [("data", 2), ("model", 8)])
    assert not bounds.within(hosts, "data,model", [("data", 2), ("model", 8)])
    assert not bounds.within(hosts, "model", [("data", 4), ("pipe", 1), ("model", 3)])


def test_a_machine_nobody_knows_has_no_bounds():
    import msgspec

    assert of(msgspec.structs.replace(V5E, machine="v99")) is None
