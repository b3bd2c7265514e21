"""Which devices hold more than others, and which programs fit beside what is alive."""

from __future__ import annotations

import io

import handwritten_runs
import msgspec
import pytest
from handwritten_runs import CWD, Log

from jaxscope.log import store
from jaxscope.model import arrays, devices
from jaxscope.model.load import load
from jaxscope.present import failures
from jaxscope.present import findings as words
from jaxscope.report import json_report
from jaxscope.report.console import console
from jaxscope.report.function import render_function
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.keys import Frame, Memory, Sharding

MIB = 1 << 20
GIB = 1 << 30
MESH = (("data", 4, "Auto"),)
SPLIT = Sharding("NamedSharding", "P('data',) on data=4", "0-3", MESH, "P('data',)", "device")
TABLE = [SPLIT, *(Sharding("SingleDeviceSharding", f"gpu:{d}", str(d)) for d in range(4))]
STEP = handwritten_runs.function("train_step")
LINE = Frame(f"{CWD}/train.py", 140, "main")


def group(path, sharding, device_bytes, line=30):
    copies = 4 if sharding == 0 else 1
    frame = Frame(f"{CWD}/train.py", line, "main")
    return ArrayGroup(
        path, 1, (MIB,), "uint8", device_bytes * copies, device_bytes, sharding, True, "(0,)", frame
    )


def look(*groups, memory=(), why="asked", **more):
    return ev.ArraysSeen(
        why=why,
        count=len(groups),
        groups=list(groups),
        shardings=TABLE,
        addressable="0-3",
        memory=list(memory),
        **more,
    )


def backend(platform="gpu"):
    return ev.BackendSeen(platform=platform, devices=[], process_count=1)


def program(log, memory, *, entry="call", ran_on="0", seen=STEP, module=None):
    call = log.missed(seen, handwritten_runs.key(), entry=entry)
    log.phase(call, "lower", 0.1, program="p1")
    log.phase(call, "compile", 0.1, program="p1", devices=ran_on, memory=memory, module=module)


@pytest.fixture
def run_of(tmp_path):
    def make(*doings, platform="gpu"):
        directory = store.create(tmp_path / "run", name="run", argv=[])
        log = Log(directory)
        log.say(backend(platform))
        log.say(STEP)
        for do in doings:
            do(log) if callable(do) else log.say(do, after=1.0)
        log.end()
        return load(directory)

    return make


def found(run, code):
    return [f for f in registry.findings(run) if f.code == code]


def test_the_array_that_is_on_one_device_alone_is_named(run_of):
    run = run_of(look(group("batch", 0, MIB), group("table", 1, 32 * MIB), group("small", 2, 1000)))
    [look_] = arrays.snapshots(run)
    u = devices.uneven(look_)
    assert (u.fullest, u.emptiest, u.difference) == (0, 2, 32 * MIB) and [g.path for g in u.groups] == [
        "table"
    ]
    [finding] = found(run, "JX509")
    assert (
        words.title(finding)
        == "device 0 holds 33.0 MiB and device 2 only 1.0 MiB; on device 0 is table (32.0 MiB)"
    )
    assert finding.source.line == 30 and len(finding.evidence) == 4


@pytest.mark.parametrize(("size", "severity"), [(16 * MIB, "note"), (64 * MIB, "warning")])
def test_a_few_megabytes_on_one_device_alone_are_a_note(run_of, size, severity):
    [finding] = found(run_of(look(group("batch", 0, MIB), group("table", 1, size))), "JX509")
    assert finding.severity == severity


@pytest.mark.parametrize(
    "groups",
    [
        [group("batch", 0, MIB)],
        [group("table", 1, 8 * MIB)],  # nothing is spread: one device of several is used
        [group("batch", 0, 100 * MIB), group("table", 1, 2 * MIB)],  # a fiftieth
        [group("batch", 0, 1000), group("table", 1, 100_000)],
        [group("batch", 0, MIB), group("table", 1, 8 * MIB)],  # a 2048th of an accelerator's memory
        [group("batch", 0, 256), group("table", 1, 16 * MIB)],  # next to nothing is spread
        [group("batch", 0, MIB), group(None, 1, 32 * MIB)],  # gone when Python collects it
        [],
    ],
)
def test_equal_shares_and_small_differences_are_no_finding(groups, run_of):
    assert found(run_of(look(*groups)), "JX509") == []


def test_a_look_before_a_compilation_does_not_count(run_of):
    """Parameters lie on the first device until the first step has spread them."""
    first = look(group("batch", 0, MIB), group("params", 1, 80 * MIB), why="miss")
    assert found(run_of(first, look(group("batch", 0, MIB))), "JX509") == []


@pytest.mark.parametrize(("first", "findings"), [("look", 0), ("step", 1)])
def test_a_look_before_the_first_program_on_several_devices_does_not_count(run_of, first, findings):
    """Parameters are created on the first device, and replicated before the first step."""
    placed = look(group("batch", 0, MIB), group("params", 1, 32 * MIB))

    def step(log):
        program(log, None, ran_on="0-3")

    run = run_of(*((placed, step) if first == "look" else (step, placed)))
    assert len(found(run, "JX509")) == findings


@pytest.mark.parametrize(
    ("shape", "spec"),
    [((3, 3, 32, 64), "P(None, None, 'data')"), ((8, 3), "P('data')"), ((5,), "P('data')")],
)
def test_the_advice_splits_a_dimension_that_the_number_of_devices_divides(run_of, shape, spec):
    kernel = msgspec.structs.replace(group("kernel", 1, 32 * MIB), shape=shape)
    [finding] = found(run_of(look(group("batch", 0, MIB), kernel)), "JX509")
    assert f"NamedSharding(mesh, {spec}))" in words.fix_text(finding)


LIMIT = [DeviceMemory(d, 1 * GIB, 2 * GIB, 8 * GIB) for d in range(4)]


def test_a_program_compiled_ahead_of_time_that_will_not_fit_is_an_error(run_of):
    memory = Memory(GIB, 4 * GIB, 0, 5 * GIB, None)
    run = run_of(look(memory=LIMIT), lambda log: program(log, memory, entry="aot"))
    [finding] = found(run, "JX510")
    assert (
        finding.severity == "error"
        and words.title(finding) == "train_step needs 10.0 GiB on each device, but a device has only 8.0 GiB"
    )
    assert finding.function == STEP.function and finding.evidence[0].program == "p1"


def test_what_is_alive_and_no_argument_counts_beside_it(run_of):
    used = [DeviceMemory(d, 5 * GIB, 6 * GIB, 8 * GIB) for d in range(4)]
    memory = Memory(2 * GIB, 2 * GIB, 0, 2 * GIB, None)  # 6 GiB, and 5 - 2 beside
    run = run_of(look(memory=used), lambda log: program(log, memory, entry="aot"))
    [want] = devices.wants(run)
    assert (want.peak, want.beside, want.fits, want.fits_alone) == (6 * GIB, 3 * GIB, False, True)
    [finding] = found(run, "JX510")
    assert finding.severity == "warning" and "in addition to 3.0 GiB of live arrays" in words.title(finding)


def test_a_program_that_ran_has_fitted(run_of):
    run = run_of(look(memory=LIMIT), lambda log: program(log, Memory(GIB, 9 * GIB, 0, 0, None)))
    assert found(run, "JX510") == [] and devices.wants(run)[0].ran


def test_the_program_it_died_in_did_not_fit(run_of):
    died = ev.Died(error="JaxRuntimeError", message="RESOURCE_EXHAUSTED: Out of memory", stack=[LINE])
    run = run_of(look(memory=LIMIT), lambda log: program(log, Memory(GIB, 9 * GIB, 0, 0, None)), died)
    assert [f.severity for f in found(run, "JX510")] == ["error"]


def test_devices_of_a_cpu_share_what_the_host_has(run_of):
    memory = Memory(0, 3 * GIB, 0, 0, None)
    events = look(host_limit=10 * GIB), lambda log: program(log, memory, entry="aot", ran_on="0-3")
    [finding] = found(run_of(*events, platform="cpu"), "JX510")
    assert (
        words.title(finding)
        == "train_step needs 3.0 GiB on each device, but the 4 devices of this host share only 10.0 GiB"
    )


def test_where_no_capacity_is_known_nothing_is_reported(run_of):
    run = run_of(look(), lambda log: program(log, Memory(GIB, 1 << 60, 0, 0, None), entry="aot"))
    assert devices.wants(run) == [] and found(run, "JX510") == []
    assert json_report.as_json(run)["programs"][0]["memory"]["capacity_bytes"] is None


NEARLY_FULL = [DeviceMemory(0, GIB, 4 * GIB, 8 * GIB), DeviceMemory(1, GIB, int(7.6 * GIB), 8 * GIB)]


def test_a_device_that_was_nearly_full_is_a_note(run_of):
    [finding] = found(run_of(look(memory=NEARLY_FULL), platform="tpu"), "JX510")
    assert (finding.severity, words.title(finding)) == (
        "note",
        "device 1 used 95% of its memory at its peak: 7.6 GiB of 8.0 GiB",
    )


def test_a_peak_on_a_gpu_that_no_program_and_no_array_explains_is_the_compilers(run_of):
    """XLA tries variants of kernels while it compiles, with buffers of the same allocator."""
    assert found(run_of(look(memory=NEARLY_FULL)), "JX510") == []


def test_a_gpu_whose_memory_is_in_use_is_a_note(run_of):
    full = [DeviceMemory(0, int(7.5 * GIB), int(7.6 * GIB), 8 * GIB)]
    assert [f.severity for f in found(run_of(look(memory=full)), "JX510")] == ["note"]


WITHOUT_MEMORY = (
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9.00GiB with allocator GPU_0_bfc on device 0."
    " [executable_name='jit_train_step'] [tf-allocator-allocation-error='']"
)


@pytest.mark.parametrize(("named", "codes"), [("jit_train_step", ["error"]), ("jit_evaluate", [])])
def test_a_program_that_a_gpu_ran_later_is_known_by_its_name_in_the_error(named, codes, run_of):
    """The line that raises the error reads a result, and is not the call."""
    error = WITHOUT_MEMORY.replace("jit_train_step", named)
    died = ev.Died(error="JaxRuntimeError", message=error, stack=[Frame(f"{CWD}/train.py", 150, "main")])
    full = [DeviceMemory(0, GIB, 8 * GIB, 8 * GIB)]
    run = run_of(
        look(memory=LIMIT),
        lambda log: program(log, Memory(GIB, 0, 0, 9 * GIB, None), module="jit(train_step)"),
        look(memory=full, why="exhausted", error=error),
        died,
    )
    results = found(run, "JX510")
    assert [f.severity for f in results] == codes
    if results:
        assert words.fix_text(results[0]).startswith("9.0 GiB of this memory are temporaries")
        [spans] = failures.memory_needed(run, None)
        assert spans[1].startswith(" ran out of memory; it needs on each device: arguments 1.0 GiB")


def test_json_has_what_the_allocators_say(run_of):
    run = run_of(look(memory=LIMIT[:1]), lambda log: program(log, Memory(1, 2, 0, 3, None)))
    data = json_report.as_json(run)
    assert data["arrays"]["snapshots"][0]["memory"] == [
        {"device": 0, "in_use_bytes": GIB, "peak_bytes": 2 * GIB, "limit_bytes": 8 * GIB}
    ]
    assert data["programs"][0]["memory"]["capacity_bytes"] == 8 * GIB


def test_damaged_figures_are_not_believed(run_of):
    odd = [DeviceMemory(0, -5, -7, -1), DeviceMemory(1, None, 3, 0)]
    run = run_of(look(group("x", 0, 1), memory=odd, host_limit=-4), lambda log: program(log, Memory(-1, -2, -3, None, None)))  # fmt: skip
    assert found(run, "JX510") == [] and devices.wants(run) == []


def test_the_report_of_a_function_says_how_much_room_it_leaves(run_of):
    used = [DeviceMemory(d, 5 * GIB, 6 * GIB, 8 * GIB) for d in range(4)]
    texts = {"hlo": "HloModule jit_train_step\n\nENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n"}  # fmt: skip

    def compiled(log):
        program(log, Memory(2 * GIB, 2 * GIB, 0, 2 * GIB, None), entry="aot")
        blob, size = log.run.put_text(texts["hlo"])
        log.say(ev.ProgramText(program="p1", stage="hlo", blob=blob, bytes=size))

    run = run_of(look(memory=used), compiled)
    out = io.StringIO()
    to = console(out)
    to.width = 120
    render_function(run, "train_step", to)
    assert (
        "memory fit  peak 6.0 GiB plus 3.0 GiB in other live arrays, of 8.0 GiB: does not fit"
        in out.getvalue()
    )
