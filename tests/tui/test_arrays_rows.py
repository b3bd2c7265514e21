"""Live arrays as rows, and the mesh as a drawing: made without a terminal."""

from __future__ import annotations

import pytest
import screen_runs
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.load import load
from jaxscope.model.records import Process
from jaxscope.model.run import Run
from jaxscope.present.text import Places
from jaxscope.schema.arrays import Holder
from jaxscope.schema.keys import Frame, Partition, Sharding
from jaxscope.tui.cells import plain
from jaxscope.tui.rows import arrays, mesh

LINE = Frame("train.py", 3, "main")


def group(path="x", shape=(8, 4), sharding=None, size=128, device=None, replication=None, n=1):
    return Group(path, n, shape, "float32", size, size if device is None else device, sharding, replication, 0, True, None, LINE)  # fmt: skip


def named(spec, *axes, devices=None):
    sizes = 1
    for _, n in axes:
        sizes *= n
    return Sharding("NamedSharding", f"{spec} on it", devices or f"0-{sizes - 1}", tuple((a, n, "Auto") for a, n in axes), spec, "device")  # fmt: skip


def look(*groups, **more):
    fields = {"why": "step", "t_ns": 0, "step": 1, "count": len(groups), "bytes": 0, "by_device": {0: 1}, "memory": [], "cut": False, "error": None, "site": None}  # fmt: skip
    return Snapshot(process=Process("1", 1), groups=list(groups), **{**fields, **more})


def drawn(g, width=60):
    return [plain(line) for line in mesh.drawn(g, width)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("state.params['a']['b']", ["state", "state.params", "state.params['a']", "state.params['a']['b']"]),
        ("history[*]", ["history", "history[*]"]),
        ("seen[*].x…", ["seen", "seen[*]", "seen[*].x…"]),
        ("a['it\\'s']", ["a", "a['it\\'s']"]),
        ("a['", ["a", "a['"]),
        ("", [""]),
        (None, ["unnamed"]),
    ],
)
def test_a_name_has_the_names_above_it(path, expected):
    assert arrays.prefixes(path) == expected


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("P('data', None)", "P(data, None)"),
        ("PartitionSpec(('data', 'model'),)", "P((data, model))"),
        ("P(UNCONSTRAINED, 'data')", "P(UNCONSTRAINED, data)"),
        ("P(None, unreduced={'data'})", "P(None, unreduced={data})"),
        ("P()", "P()"),
        ("no spec", "no spec on it"),
    ],
)
def test_a_sharding_is_shown_without_quotes(spec, shown):
    assert arrays.spelled(group(sharding=named(spec, ("data", 4), ("model", 2)))) == shown


def test_a_sharding_of_a_new_log_is_shown_from_its_data():
    """A name with a quote or a comma was changed in the text."""
    axes = Partition((("it's, data",), ()))
    sharding = Sharding("NamedSharding", "text", "0-3", None, 'P("it\'s, data",)', "device", axes)
    assert arrays.spelled(group(sharding=sharding)) == "P(it's, data, None)"


@pytest.mark.parametrize(
    "held",
    [{"holder": Holder("container", "list", count=40)}, {"held": "a list of 40"}],
    ids=["as data", "as text in an older log"],
)
def test_the_object_that_keeps_arrays_without_a_name_is_named(held):
    found = look(replace(group(path=None), **held))
    [row] = arrays.tree(found, [], flat=False)
    facts = arrays.facts(row, arrays.Snapshots(), Places(Run()))
    assert "held by a list of 40" in [plain(line) for line in facts]


@given(st.lists(st.text(alphabet="ab.['*]\\\"…", max_size=12), max_size=8), st.booleans())
def test_every_array_stands_in_the_list_once_whatever_it_is_called(paths, flat):
    found = look(*(group(p, size=k + 1) for k, p in enumerate(paths)))
    everything = arrays.tree(found, [], flat=flat)
    opened = {r.id for r in everything if r.open is False}
    while opened:
        toggled = opened if not flat else set()
        again = arrays.tree(found, toggled, flat=flat)
        more = toggled | {r.id for r in again if r.open is False}
        if more == toggled:
            everything = again
            break
        opened, everything = more, again
    leaves = [r for r in everything if r.open is None]
    assert sum(len(r.groups) for r in leaves) == len(paths)
    assert len({r.id for r in leaves}) == len({(r.prefix, r.groups[0].path) for r in leaves})


def test_names_add_up_and_open_one_by_one():
    found = look(
        group("state.params['a']", size=30),
        group("state.params['b']", size=20),
        group("state.step", shape=(), size=4),
        group("batch", size=100),
    )
    rows = arrays.tree(found, [])
    assert [(r.label, r.depth, r.arrays, r.global_bytes, r.open) for r in rows] == [
        ("batch", 0, 1, 100, None),
        ("state", 0, 3, 54, True),
        (".params", 1, 2, 50, False),
        (".step", 1, 1, 4, None),
    ]
    assert [r.label for r in arrays.tree(found, {"state.params"})][3:5] == ["['a']", "['b']"]
    assert [r.label for r in arrays.tree(found, {"state"})] == ["batch", "state"]


def test_bytes_on_a_device_are_those_of_the_fullest_where_arrays_lie_apart():
    one, two = Sharding("SingleDeviceSharding", "cpu:0", "0"), Sharding("SingleDeviceSharding", "cpu:1", "1")
    row = arrays.Row("x", "x", "x", 0, (group("x[0]", sharding=one, size=10), group("x[1]", sharding=two, size=30)), True)  # fmt: skip
    assert (row.global_bytes, row.device_bytes) == (40, 30)
    assert plain(arrays.placed(row)) == "2 shardings"


def test_what_is_not_known_is_not_a_number():
    row = arrays.Row("x", "x", "x", 0, (group("x", size=None), group("x", size=3)), True)
    assert (row.global_bytes, row.device_bytes) == (None, None)


def test_growth_is_drawn_from_nothing_to_the_most():
    assert arrays.sparkline([0, 1, 4, 8]) == "·▁▄█"
    assert arrays.sparkline([0, 0]) == "··"
    assert arrays.sparkline([]) == ""


def test_a_list_that_grows_is_marked_and_says_its_pace(tmp_path):
    run = load(screen_runs.typical(tmp_path / "run"))
    snapshots = arrays.Snapshots()
    assert snapshots.update(run) and not snapshots.update(run)
    at = snapshots.default(running=False)
    assert at == 3 and snapshots.default(running=True) == 3
    row = next(r for r in arrays.tree(snapshots.found[at], []) if r.prefix == "history[*]")
    name, *_, grown = arrays.columns(snapshots, at, 8)
    assert plain(name.cell(row, 40)).endswith("history[*] ▲")
    assert plain(grown.cell(row, 8)) == "▁▃▅█"


def test_copies_are_drawn_alike_and_parts_are_not():
    text = drawn(group(shape=(8, 4), sharding=named("P('data', None)", ("data", 4), ("model", 2))))
    assert text[:7] == [
        "mesh data=4 x model=2",
        "       model 0 model 1",
        "data 0 ██ 0 ██ ██ 1 ██ ",
        "data 1 ▓▓ 2 ▓▓ ▓▓ 3 ▓▓ ",
        "data 2 ▒▒ 4 ▒▒ ▒▒ 5 ▒▒ ",
        "data 3 ░░ 6 ░░ ░░ 7 ░░ ",
        "● same fill = same bytes: 2 copies",
    ]
    assert text[7:9] == ["██ [0:2, :]  on devices 0, 1", "▓▓ [2:4, :]  on devices 2, 3"]


def test_one_axis_is_broken_into_rows_of_a_power_of_two():
    text = drawn(group(shape=(16,), sharding=named("P('data')", ("data", 16))), 40)
    rows = text[1:5]
    assert text[0] == "mesh data=16"
    assert [[int(w) for w in row.split() if w.isdecimal()] for row in rows] == [
        [4 * n + k for k in range(4)] for n in range(4)
    ]


def test_sixty_four_parts_look_different():
    assert len({mesh.look_of(n) for n in range(64)}) == 64


def test_more_than_64_devices_are_reported_by_axis():
    text = drawn(group(shape=(64, 32), sharding=named("P('data', None)", ("data", 64), ("model", 16))), 60)
    assert text[0] == "mesh data=64 x model=16  1,024 devices"
    assert text[1] == "data=64  splits dimension 0 (64) into 64 parts"
    assert text[3] == "model=16 ● copies"
    assert text[4].strip() == "█" * 16


@pytest.mark.parametrize(
    ("g", "said"),
    [
        (group(sharding=None), "not known"),
        (group(shape=None), "not known"),
        (group(shape=("n", 4), sharding=named("P()", ("d", 2))), "not known"),
        (group(sharding=Sharding("SingleDeviceSharding", "cpu:3", "3")), "whole, on device 3"),
        (group(sharding=Sharding("Odd", "Odd(?)", "0-3")), "not known for Odd(?)"),
        (group(sharding=Sharding("Odd", "Odd(?)", "0-300")), "not known for Odd(?)"),
        (group(sharding=Sharding("GSPMDSharding", "{devices=[2,1]<=[2]}", "0-1")), "0"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_reported(g, said):
    assert said in "\n".join(drawn(g))


@given(st.integers(1, 12), st.integers(1, 6), st.integers(6, 120), st.sampled_from(["P()", "P('a')", "P(None, 'b')", "P(('a', 'b'))"]))  # fmt: skip
def test_a_mesh_of_any_size_is_drawn_at_any_width(a, b, width, spec):
    text = drawn(group(shape=(a * b, b), sharding=named(spec, ("a", a), ("b", b))), width)
    assert text


def test_each_device_has_a_bar_and_many_have_a_line():
    few = [plain(line) for line in mesh.devices(look(by_device={0: 1024, 1: 512}), 40)]
    assert few[0] == "Devices  512 B to 1.0 KiB each"
    assert few[1].count("█") == 2 * few[2].count("█")
    many = [plain(line) for line in mesh.devices(look(by_device=dict.fromkeys(range(100), 7)), 60)]
    assert len(many) == 5 and many[1].split()[0] == "0-31"
    assert mesh.devices(look(by_device={}), 60) == []
