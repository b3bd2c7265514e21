"""Live arrays as a run tells them: bytes by device, copies, padding, what grows."""

from __future__ import annotations

import handwritten_runs
import pytest
from handwritten_runs import CWD, Log

from jaxscope.log import store
from jaxscope.model import arrays
from jaxscope.model.load import load
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.keys import Frame, Sharding

MESH = (("data", 4, "Auto"), ("model", 2, "Auto"))
SPLIT = Sharding("NamedSharding", "P('data',) on data=4,model=2", "0-7", MESH, "P('data',)", "device")
WHOLE = Sharding("NamedSharding", "P() on data=4,model=2", "0-7", MESH, "P()", "device")
ODD = Sharding("FutureSharding", "FutureSharding(?)", "0-7", None, None, "device")
TABLE = [handwritten_runs.ONE_CPU, SPLIT, WHOLE, ODD]
LINE = Frame(f"{CWD}/train.py", 30, "main")


def group(path, count=1, shape=(8, 4), size=128, device=None, sharding=0, **more):
    per_device = size if device is None else device
    return ArrayGroup(
        path,
        count,
        shape,
        "float32",
        size * count,
        per_device * count,
        sharding,
        True,
        "(0, 1)",
        LINE,
        **more,
    )


def seen(*groups, step=None, why="step", **more):
    more = {"addressable": "0-7", "shardings": TABLE, **more}
    return ev.ArraysSeen(why=why, step=step, count=sum(g.count for g in groups), groups=list(groups), **more)


@pytest.fixture
def run_of(tmp_path):
    def make(*events):
        run = store.create(tmp_path / "run", name="run", argv=[])
        log = Log(run)
        for e in events:
            log.say(e, after=1.0)
        log.end()
        return load(run)

    return make


def test_copies_padding_and_bytes_follow_from_the_sharding(run_of):
    run = run_of(
        seen(
            group("split", device=32, sharding=1),
            group("whole", sharding=2),
            group("tiled[*]", 2, device=40, sharding=1),  # a device that keeps 8 bytes more
            group("odd", device=16, sharding=3),
        )
    )
    [look] = arrays.snapshots(run)
    got = {g.path: (g.replication, g.padding_bytes, g.global_bytes, g.device_bytes) for g in look.groups}
    assert got == {
        "split": (2, 0, 128, 32),
        "whole": (8, 0, 128, 128),
        "tiled[*]": (2, 128, 256, 80),
        "odd": (None, None, 128, 16),
    }
    assert look.by_device == dict.fromkeys(range(8), 32 + 128 + 80 + 16) and look.bytes == 8 * 256


def test_nothing_is_claimed_of_devices_of_another_host(run_of):
    [look] = arrays.snapshots(run_of(seen(group("split", device=32, sharding=1), addressable="4-7")))
    assert look.by_device == dict.fromkeys(range(4, 8), 32) and look.bytes == 128
    assert look.groups[0].replication == 2


def test_bytes_on_a_device_that_were_not_reported_follow_from_the_shape(run_of):
    g = ArrayGroup("x", 2, (8, 4), "float32", 256, None, 1)
    [look] = arrays.snapshots(run_of(seen(g)))
    assert look.groups[0].device_bytes == 64 and look.bytes == 64 * 8


def test_what_is_not_known_is_not_a_number(run_of):
    [look] = arrays.snapshots(
        run_of(seen(ArrayGroup("x…", 3, None, None, None, None, None), ArrayGroup(None, 1)))
    )
    assert (look.bytes, look.unnamed_share) == (None, None)
    assert look.groups[0].replication is None and look.groups[0].memory_kind is None
    assert look.count == 4


def test_a_log_with_damaged_figures_is_still_read(run_of):
    bad = ArrayGroup("x", 1, (-3, 4), "float32", -5, 7, 99)
    zero = ArrayGroup("y", 1, (0, 4), "float32", 0, None, 1)
    [look] = arrays.snapshots(run_of(seen(bad, zero, addressable="all of them")))
    assert look.groups[0].replication is None and look.groups[1].device_bytes == 0


def test_an_array_that_could_not_be_allocated_takes_no_memory(run_of):
    # a GPU allocates after the call has returned: such arrays are live and have their full size
    memory = [DeviceMemory(0, in_use=100, peak=200, limit=1000)]
    device = Sharding("SingleDeviceSharding", "SingleDeviceSharding(0)", "0", None, None, "device")
    groups = [group("x", 3, size=128), group("failed", 2, size=256)]
    [look] = arrays.snapshots(run_of(seen(*groups, addressable="0", memory=memory, shardings=[device])))
    assert ([g.path for g in look.groups], look.count, look.bytes) == (["x"], 3, 3 * 128)


def test_arrays_in_host_memory_may_be_larger_than_what_the_device_has_had_in_use(run_of):
    host = Sharding("SingleDeviceSharding", "SingleDeviceSharding(0)", "0", None, None, "pinned_host")
    memory = [DeviceMemory(0, in_use=100, peak=200, limit=1000)]
    [look] = arrays.snapshots(
        run_of(seen(group("kept", size=256), shardings=[host], addressable="0", memory=memory))
    )
    assert look.count == 1 and look.bytes == 256


def test_the_share_without_a_name_is_by_bytes(run_of):
    [look] = arrays.snapshots(run_of(seen(group("x", size=300), group(None, size=100))))
    assert look.unnamed_share == 0.25


def looks(counts, path="history[*]", steps=None, **more):
    steps = steps or [1, 2, 3, 4, 8, 16, 32][: len(counts)]
    return [
        seen(group("state", 3), group(path, n, **more), step=k) for k, n in zip(steps, counts, strict=True)
    ]


def test_a_group_that_only_ever_grew_is_growing_with_its_pace(run_of):
    [growth] = arrays.growing(run_of(*looks([1, 2, 3, 4, 8, 16, 32])))
    assert growth.group.path == "history[*]" and growth.more_arrays == 1 and growth.more_bytes == 128


def test_arrays_of_many_shapes_in_one_list_grow_together(run_of):
    events = [
        seen(*(group(f"seen[*]['{n % 2}']", 1 + n, shape=(n + 1,)) for n in range(k)), step=k)
        for k in (1, 2, 4, 8, 16)
    ]
    [growth] = arrays.growing(run_of(*events))
    assert growth.group.path.startswith("seen[*]") and growth.seen[-1][0] == 16


@pytest.mark.parametrize(
    "counts",
    [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 2, 3, 4, 4, 4, 4],  # a buffer that fills
        [1, 2, 3, 4, 5, 5, 6],  # a pause
        [32, 16, 8, 4, 3, 2, 1],
        [1, 4, 9, 20, 21, 22, 23],  # slows down: a cache that fills
    ],
)
def test_what_fills_up_or_falls_is_not_growing(counts, run_of):
    assert arrays.growing(run_of(*looks(counts))) == []


def test_a_dict_with_a_new_text_key_in_each_step_grows(run_of):
    events = [
        seen(group("params['a']"), *(group(f"seen['{chr(97 + n)}']['w']") for n in range(k)), step=k)
        for k in (1, 2, 4, 8, 16)
    ]
    [growth] = arrays.growing(run_of(*events))
    assert (growth.path, growth.more_arrays) == ("seen[*]", 1)


def test_one_array_that_becomes_longer_grows_by_bytes(run_of):
    events = [seen(group("w"), group("log", shape=(k, 4), size=16 * k), step=k) for k in (1, 2, 4, 8, 16)]
    [growth] = arrays.growing(run_of(*events))
    assert (growth.path, growth.more_arrays, growth.more_bytes) == ("log", 0, 16)


@pytest.mark.parametrize(
    ("lengths", "bounded"),
    [
        ({"history": 500}, ["history"]),  # deque(maxlen=500)
        ({"history": 40}, []),  # [None] * 40, filled one by one
    ],
)
def test_a_container_that_fills_up_to_its_bound_is_not_growing(lengths, bounded, run_of):
    events = [
        seen(group("history[*]", n), step=n, lengths=lengths, bounded=bounded) for n in (1, 2, 4, 8, 16, 32)
    ]
    assert arrays.growing(run_of(*events)) == []


def test_a_list_that_becomes_longer_with_its_arrays_grows(run_of):
    events = [seen(group("history[*]", n), step=n, lengths={"history": n}) for n in (8, 16, 24, 32)]
    assert [g.path for g in arrays.growing(run_of(*events))] == ["history[*]"]


def timed(*counts, why="time", **more):
    """Snapshots a second apart of a program that counts no steps; 0: the list is not there yet."""
    kept = [[group("history[*]", n)] if n else [] for n in counts]
    return [seen(group("state", 3), *groups, why=why, **more) for groups in kept]


def test_without_steps_a_list_that_grew_in_six_snapshots_grows_by_the_second(run_of):
    [growth] = arrays.growing(run_of(*timed(0, 10, 20, 30, 40, 50), *timed(50, why="exit")))
    assert growth.path == "history[*]" and not growth.in_steps
    assert growth.more_arrays == pytest.approx(10) and growth.more_bytes == pytest.approx(1280)
    assert [n for _, n, _ in growth.seen] == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize(
    "counts",
    [
        (0, 10, 20, 30, 40),  # too few
        (0, 10, 20, 15, 30, 40, 50),  # emptied at times
        (0, 30, 60, 90, 91, 92, 93),  # slows down: a cache that fills
        (0, 1, 2, 3, 4, 5),  # five arrays are no leak
        (0, 10, 20, 30, 40, 50, 50, 50),  # loaded before the training
    ],
)
def test_without_steps_little_evidence_makes_no_trend(counts, run_of):
    assert arrays.growing(run_of(*timed(*counts))) == []


def test_without_steps_a_list_of_fixed_length_that_is_filled_is_not_growing(run_of):
    filled = timed(10, 20, 30, 40, 50, lengths={"history": 500})
    assert arrays.growing(run_of(*timed(0), *filled)) == []


def test_three_looks_or_five_steps_make_no_trend(run_of):
    assert arrays.growing(run_of(*looks([1, 8, 32], steps=[1, 8, 32]))) == []


def test_arrays_without_a_name_grow_by_the_line_that_made_them(run_of):
    [growth] = arrays.growing(run_of(*looks([1, 2, 3, 4, 8, 16, 32], path=None)))
    assert growth.group.path is None and growth.group.origin == LINE


def test_the_look_that_met_the_most_is_the_fullest(run_of):
    run = run_of(seen(group("a"), step=1), seen(group("a", 9), step=2), seen(group("a"), step=3))
    assert arrays.fullest(arrays.of_main(run)).step == 2
    assert arrays.fullest([]) is None


def test_of_looks_that_met_nearly_the_same_the_one_that_knows_names_is_the_fullest(run_of):
    """While a call returns no variable leads to its results."""
    between = [seen(group(None, 10), group("labels"), step=n) for n in (1, 2)]
    run = run_of(seen(group("w", 10), step=0), *between, seen(group("w", 10), why="exit"))
    assert arrays.fullest(arrays.of_main(run)).why == "exit"


def test_a_look_that_met_far_more_is_the_fullest_without_any_names(run_of):
    run = run_of(seen(group("w", 4), step=0), seen(group(None, 10), step=1))
    assert arrays.fullest(arrays.of_main(run)).step == 1
