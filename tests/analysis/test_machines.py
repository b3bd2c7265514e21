"""Names of targets, and the catalog behind them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import machines
from jaxscope.errors import UsageError
from jaxscope.report.machines import machine_lines


@pytest.mark.parametrize(
    "name, devices, grid",
    [
        ("v5e:16x16", 256, (16, 16)),
        ("v5p:16x16x16", 4096, (16, 16, 16)),
        ("2*v5p:4x4x4", 128, (4, 4, 4)),
        ("v4:2x2x1", 4, (2, 2, 1)),
        ("v3:4x4", 32, (4, 4)),  # two cores a chip, each a device
        ("tpu7x:2x2x1", 8, (2, 2, 1)),
        ("h100:8", 8, (1, 8)),
        ("h100:128x8", 1024, (128, 8)),
    ],
)
def test_a_target_has_as_many_devices_as_jax_would_show(name, devices, grid):
    target = machines.parse(name)
    assert (target.name, target.devices, target.grid) == (name, devices, grid)


def test_a_name_in_another_spelling_is_the_same_target():
    assert machines.parse(" V5E:4X4 ") == machines.parse("v5e:4x4") == machines.parse("1*v5e:4x4")
    assert machines.parse("h100:1x8") == machines.parse("h100:8")


@pytest.mark.parametrize(
    "wrong, right",
    [
        ("v5litepod-16", "v5e:4x4"),
        ("v5e:64", "v5e:8x8"),
        ("v5p:16x16", "v5p:4x8x8"),
        ("v5e:32x32", "v5e:16x16"),
        ("tpu-v6e:4x4", "v6e:4x4"),
        ("v7x:4x4x4", "tpu7x:4x4x4"),
        ("h10:8", "h100:8"),
        ("h100:16", "h100:2x8"),
        ("v5e:0x4", "v5e:1x1"),
        ("2*h100:8", "h100:8"),
        ("a100:2x2x8", "a100:4x8"),
    ],
)
def test_a_name_that_is_none_gets_the_nearest_that_are(wrong, right):
    with pytest.raises(UsageError) as e:
        machines.parse(wrong)
    assert right in e.value.hint.split("?")[0].removeprefix("did you mean ").split(", ")


@pytest.mark.parametrize(
    "wrong, why, near",
    [
        ("v5e:4x5", "a host has 2x2 chips, so a slice has 1 or an even number", "v5e:4x4"),
        ("v5e:3x3", "even number of them along its first two axes, not 3x3", "v5e:2x4"),
        ("2*v6e:5x2", "even number", "v6e:2x4"),
        ("v5p:4x3x4", "even number", "v5p:4x4x4"),
        ("v4:3x3x3", "even number", "v4:2x4x4"),
        ("v5e:2x18", "2x18 is not a slice of a pod, which is 16x16", "v5e:4x8"),
        ("v3:34x2", "is not a slice of a pod, which is 32x32", "v3:8x8"),
    ],
)
def test_a_grid_that_no_slice_has_is_refused_with_the_reason_and_those_near_it(wrong, why, near):
    with pytest.raises(UsageError) as e:
        machines.parse(wrong)
    assert why in e.value.message
    assert near in e.value.hint.split("?")[0].removeprefix("did you mean ").split(", ")


@pytest.mark.parametrize(
    "name",
    ["v5e:1x1", "v5e:1x2", "v5e:4x6", "v6e:16x2", "v5p:2x2x3", "v4:4x4x5", "v5p:16x20x28", "tpu7x:1x2x7"],
)
def test_a_grid_of_whole_hosts_or_of_a_part_of_one_is_taken_listed_or_not(name):
    assert machines.parse(name).name == name


def test_of_a_slice_that_no_page_lists_the_nearest_that_are_listed_are_known():
    assert "v5e:8x16" in machines.unlisted("v5e:10x12")
    assert [machines.unlisted(n) for n in ("v5e:8x16", "2*v5e:4x4", "h100:3x8", "no:1", "")] == [[]] * 5


def test_every_listed_target_is_one():
    names = machines.known()
    assert len(names) == len(set(names)) > 60
    assert [machines.parse(n).name for n in names] == names


def test_every_figure_says_where_it_was_read():
    for machine in machines.MACHINES.values():
        figures = [
            machine.memory,
            machine.usable,
            machine.hbm,
            machine.link,
            machine.network,
            *machine.flops.values(),
        ]
        for figure in figures:
            assert figure is None or (figure.value > 0 and figure.source.startswith("https://"))
            assert figure is None or figure.quoted is None or figure.quoted.strip()
        if machine.usable is not None and machine.memory is not None:
            per_device = machine.memory.value / machine.devices_per_chip
            assert 0.9 * per_device < machine.usable.value < 1.07 * per_device


def test_no_machine_is_printed_with_more_usable_memory_than_it_has():
    """A vendor's page may round down (a v5p: 95 GB; its compiler refuses what is too large for 95.74 GiB)."""
    lines = "\n".join(entry.text.plain for entry in machine_lines(list(machines.MACHINES.values())))
    assert "memory 95.7 GiB of a device usable, as its compiler says (95.0 GiB on the vendor's page)" in lines
    sizes = re.findall(r"memory ([\d.]+) GiB, ([\d.]+) GiB of a device usable", lines)
    assert len(sizes) > 5 and all(float(usable) <= float(memory) for memory, usable in sizes)


@given(st.text(max_size=40) | st.from_regex(r"[0-9*]{0,6}[a-z0-9]{0,6}[:\-]?[0-9x]{0,20}", fullmatch=True))
def test_any_text_is_a_target_or_refused_with_a_hint(text):
    try:
        target = machines.parse(text)
    except UsageError as e:
        assert "jaxscope targets" in e.hint
    else:
        assert machines.parse(target.name) == target


@pytest.mark.parametrize("name", ["v3", "v5e", "v5p", "v6e"])
def test_links_are_those_of_the_pods_stated_all_reduce_bandwidth(name):
    stated = {"v3": (340e12, 1024), "v5e": (51.2e12, 256), "v6e": (102.4e12, 256), "v5p": (600e9, 1)}
    total, chips = stated[name]
    machine = machines.MACHINES[name]
    assert machine.link.value * machine.links == pytest.approx(total / chips, rel=0.01)


def test_what_no_opened_page_states_is_left_out():
    v2 = machines.MACHINES["v2"]
    assert (v2.memory, v2.hbm, v2.link, v2.flops) == (None, None, None, {})
    assert machines.MACHINES["a100"].network is None
