"""Live arrays on the page: what lay where, what is unnamed, and first of all what memory ran out on."""

from __future__ import annotations

import io

import handwritten_runs
import msgspec
from handwritten_runs import CWD, Log

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report import arrays, text
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.keys import Frame, Memory, Sharding

MESH = (("data", 8, "Auto"),)
WHOLE = Sharding("NamedSharding", "P() on data=8", "0-7", MESH, "P()", "pinned_host")
LINE = Frame(f"{CWD}/train.py", 30, "main")
MIB = 1 << 20


def seen(**more):
    params = ArrayGroup("state.params['w']", 1, (512, 512), "float32", MIB, MIB, 1, True, "(1, 0)", LINE)
    lost = ArrayGroup(None, 40, (8,), "float32", MIB, MIB, 0, False, "(0,)", LINE)
    small = ArrayGroup("rng", 1, (2,), "uint32", 8, 8, 0, False, "(0,)", None)
    more = {"why": "step", "step": 4, **more}
    return ev.ArraysSeen(
        count=42,
        shardings=[handwritten_runs.ONE_CPU, WHOLE],
        groups=[params, lost, small],
        addressable="0-7",
        **more,
    )


def page(tmp_path, *events, before=None):
    run = store.create(tmp_path / "run", name="run", argv=[])
    log = Log(run)
    if before:
        before(log)
    for e in events:
        log.say(e, after=1.0)
    log.end()
    out = io.StringIO()
    text.print_report(load(run), file=out)
    return out.getvalue(), load(run)


def test_figures_that_look_the_same_are_one_figure(tmp_path):
    full = seen()
    shown, _ = page(tmp_path, msgspec.structs.replace(full, groups=[full.groups[0], full.groups[2]]))
    assert "8.0 MiB on 8 devices, 1.0 MiB each" in " ".join(shown.split())  # and 8 bytes more on the first


def test_a_look_that_is_not_the_fullest_does_not_say_so(tmp_path):
    full = seen()
    between = msgspec.structs.replace(
        full, groups=[msgspec.structs.replace(g, path=None) for g in full.groups]
    )
    bare = msgspec.structs.replace(full, groups=[full.groups[0]], count=1, step=8)
    shown, _ = page(tmp_path, between, bare)
    assert "Live arrays in nearly the largest of 2 snapshots (after step 8)" not in " ".join(
        shown.split()
    )  # 8 of 9 MiB
    near = msgspec.structs.replace(full.groups[1], bytes=MIB // 2, device_bytes=MIB // 2, path="moments")
    again = tmp_path / "again"
    again.mkdir()
    close = msgspec.structs.replace(full, groups=[full.groups[0], near], step=8)
    assert "in nearly the largest of 2 snapshots (after step 8)" in " ".join(
        page(again, between, close)[0].split()
    )


def test_the_fullest_look_is_reported_group_by_group(tmp_path):
    memory = [DeviceMemory(3, 6 << 30, None, 8 << 30)]
    shown, _ = page(
        tmp_path, seen(memory=memory), msgspec.structs.replace(seen(), groups=[], count=1, step=8)
    )
    assert "Live arrays in the largest of 2 snapshots (after step 4): 42 arrays" in " ".join(shown.split())
    flat = " ".join(shown.split())
    flat = flat.replace(" 8.0 MiB ", " ")  # on all devices: stands at the right edge of the first line
    assert "state.params['w'] float32[512,512] P() on data=8, pinned_host, 8 copies, layout (1, 0)" in flat
    assert "unnamed 40x float32[8] cpu:0 from train.py:30" in flat
    assert "and 1 more array, 8 B" in flat and "without a variable name: 50 % of the bytes" in flat
    assert "device 3 has 6.0 GiB of 8.0 GiB in use" in flat


def test_arrays_of_one_variable_are_one_row_with_their_bytes_on_all_devices(tmp_path):
    array = seen().groups[0]
    paths = ["state.params['u']", "state.params['w']", "state.opt_state[*].mu['w']", "x"]
    groups = [msgspec.structs.replace(array, path=p, shape=(n,)) for n, p in enumerate(paths, 1)]
    shown, run = page(tmp_path, msgspec.structs.replace(seen(), groups=groups, count=4))
    flat = " ".join(shown.split())
    assert "state.params 2 arrays largest: state.params['u'], float32[1] 16.0 MiB" in flat
    assert "parameters 16.0 MiB, optimizer state 8.0 MiB, other 8.0 MiB" in flat
    look = arrays.as_json(run).snapshots[0]
    assert [(t.name, t.bytes) for t in look.trees] == [
        ("state.params", 16 * MIB),
        ("state.opt_state", 8 * MIB),
        ("x", 8 * MIB),
    ]
    assert look.bytes == sum(t.bytes for sums in (look.trees,) for t in sums) == look.dtypes[0].bytes
    assert [(k.name, k.count) for k in look.kinds] == [
        ("parameters", 2),
        ("optimizer state", 1),
        ("other", 1),
    ]


def test_less_than_a_mebibyte_in_all_is_left_out(tmp_path):
    small = msgspec.structs.replace(seen(), groups=seen().groups[2:], count=1)
    assert "Live arrays" not in page(tmp_path, small)[0]


def test_what_memory_ran_out_on_comes_first_with_the_program_that_asked(tmp_path):
    step = handwritten_runs.function("train_step")

    def compiled(log):
        log.say(step)
        log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", 4)), line=140)

    said = "RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.\x1b[31m"
    site = Frame(f"{CWD}/train.py", 140, "main")
    shown, run = page(tmp_path, seen(why="exhausted", error=said, site=site), before=compiled)
    assert "\x1b" not in shown
    body = shown[shown.index("Out of memory") :]
    flat = " ".join(body.split())
    assert flat.startswith(
        "Out of memory RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.\\x1b[31m (train.py:140)"
    )
    assert "train_step (compiled last at this line) needs on each device: arguments 4.0 KiB" in flat
    assert flat.index("state.params['w']") < flat.index("Your functions")
    assert arrays.as_json(run).snapshots[0].count == 42


def test_a_run_without_looks_says_nothing_of_arrays(tmp_path):
    shown, run = page(tmp_path)
    assert "Live arrays" not in shown and arrays.as_json(run) is None


def test_json_has_null_for_what_is_not_known(tmp_path):
    unknown = ev.ArraysSeen(why="exit", count=1, groups=[ArrayGroup(None, 1)])
    _, run = page(tmp_path, unknown)
    [look] = msgspec.to_builtins(arrays.as_json(run))["snapshots"]
    assert look["bytes"] is None and look["step"] is None and look["by_device"] == []
    [g] = look["groups"]
    assert {k for k, v in g.items() if v is not None} == {"count"}


def test_what_a_program_died_of_is_reported_without_any_look(tmp_path):
    """``--no-arrays``; the message of a compiler that found out by itself has many lines."""
    said = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.\nLargest program allocations:\n\n  1. Size: 3.2G"
    died = ev.Died(error="JaxRuntimeError", message=said, stack=[LINE])
    shown, _ = page(tmp_path, died)
    flat = " ".join(shown.split())
    assert "Out of memory RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. (train.py:30)" in flat
    assert "Largest program allocations: 1. Size: 3.2G" in flat
    assert "Died of" not in flat and "What was alive" not in flat


def test_of_a_program_that_died_while_it_waited_the_largest_is_reported(tmp_path):
    small, large = handwritten_runs.function("small", line=10), handwritten_runs.function("large", line=20)

    def compiled(log):
        for f, temp in ((small, 1 << 10), (large, 1 << 30)):
            log.say(f)
            call = log.missed(f, handwritten_runs.key(), line=f.line)
            log.phase(call, "lower", 0.1)
            log.phase(call, "compile", 0.1, memory=Memory(4096, 128, 0, temp, None))

    shown, _ = page(
        tmp_path, seen(why="exhausted", error="RESOURCE_EXHAUSTED: no", site=LINE), before=compiled
    )
    flat = " ".join(shown.split())
    assert (
        "large, the largest program of the run, needs on each device: arguments 4.0 KiB, results 128 B"
        in flat
    )
    assert flat.index("temporaries 1.0 GiB") < flat.index("state.params['w']")


def test_a_program_that_its_compiler_found_no_room_for_is_named(tmp_path):
    f = handwritten_runs.function("step", line=30)

    def failed(log):
        log.say(f)
        call = log.missed(f, handwritten_runs.key(), line=30)
        log.say(ev.PhaseBegan(call=call, phase="compile"))
        log.say(ev.PhaseFailed(call=call, phase="compile", seconds=1.0))

    shown, _ = page(tmp_path, seen(why="exhausted", error="RESOURCE_EXHAUSTED: no", site=LINE), before=failed)
    assert "step was being compiled and has not run" in " ".join(shown.split())


def test_of_a_program_that_its_compiler_found_no_room_for_it_reports_what_it_wanted_before(tmp_path):
    f = handwritten_runs.function("step", line=30)

    def failed(log, *, again=False):
        log.say(f)
        log.compiled(f, handwritten_runs.key(handwritten_runs.leaf("x", 4)), line=30)
        call = log.missed(f, handwritten_runs.key(handwritten_runs.leaf("x", 8)), line=30)
        log.say(ev.PhaseBegan(call=call, phase="compile"))
        log.now += 1
        log.say(ev.PhaseFailed(call=call, phase="compile", seconds=1.0))
        if again:
            log.compiled(f, handwritten_runs.key(handwritten_runs.leaf("x", 6)), line=30)

    def told(path, **how):
        error = seen(why="exhausted", error="RESOURCE_EXHAUSTED: no", site=LINE)
        return " ".join(page(path, error, before=lambda log: failed(log, **how))[0].split())

    assert (
        "step was being compiled and has not run; its previous compilation needs on each device: arguments 4.0 KiB"
        in told(tmp_path / "one")
    )
    after = told(tmp_path / "other", again=True)  # that failure was seen to: this is another
    assert "has not run" not in after and "step (compiled last at this line) needs on each device" in after
