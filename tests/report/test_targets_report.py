"""Programs for targets in the text and JSON reports, from logs written by hand."""

import io
import itertools
import json
import os
import re

import msgspec
import pytest
from handwritten_runs import Log, function, key, leaf
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxscope.analysis import machines, programs
from jaxscope.log import reader, store
from jaxscope.log.jobs import Job, Queue
from jaxscope.log.writer import Writer
from jaxscope.model.load import Tail, load
from jaxscope.model.run import Run
from jaxscope.present.text import Places
from jaxscope.report import layout, targets
from jaxscope.report.console import console
from jaxscope.report.json_report import as_json, dumps
from jaxscope.report.text import render
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Memory
from jaxscope.schema.targets import Target

V5E = machines.parse("v5e:4x4")
HLO = "HloModule jit_train_step, num_partitions=16\n\nENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n"
STABLEHLO = (
    "module @jit_train_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "  func.func public @main(%arg0: tensor<1024x1024xf32>) -> (tensor<4xf32>) {\n    return %arg0 : tensor<4xf32>\n  }\n}\n"
)
GIB = 1 << 30


class Compiler:
    """The keeper's log."""

    def __init__(self, run):
        self.run, self.writer = run, None

    def say(self, event):
        if self.writer is None:
            self.writer = Writer(self.run, lambda _: event)
            self.writer.open()
        else:
            self.writer.emit(event)


def recorded(path, *results, devices=16, waited=0.25, skipped=None):
    """train_step, compiled for the CPU and handed over for v5e:4x4; ``results`` of it."""
    run = store.create(path, name="train", argv=["train.py"])
    log = Log(run)
    log.say(ev.ContextSeen(context="c1", settings={}))
    log.say(ev.TargetsWanted(targets=[V5E], forced=16))
    log.backend(devices)
    step = function("train_step")
    log.say(step)
    call = log.compiled(step, key(leaf("state.params['dense']", 1024, 1024)), program="c0de")
    blob, size = run.put_text(STABLEHLO)
    made = (
        {}
        if skipped
        else {"program": "7a67", "module": "jit_train_step", "stablehlo": blob, "stablehlo_bytes": size}
    )
    log.say(
        ev.Retargeted(
            call=call, target="v5e:4x4", of="c0de", seconds=waited, partitions=16, skipped=skipped, **made
        )
    )
    log.end()
    compiler = Compiler(run)
    for event in results:
        compiler.say(event)
    return run


def done(run, outcome="ok", **more):
    found = {
        "program": "7a67",
        "target": "v5e:4x4",
        "outcome": outcome,
        "seconds": 2.5,
        "compiler": "libtpu 0.0.42",
    }
    if outcome == "ok":
        blob, size = run.put_text(HLO)
        found |= {
            "text": blob,
            "text_bytes": size,
            "memory": Memory(GIB, 0, 0, 2 * GIB, 0),
            "peak_bytes": 3 * GIB,
        }
    return ev.TargetCompiled(**found, **more)


def page(run, **options):
    to = console(io.StringIO())
    to.width = 100
    render(load(run), to, run, **options)
    return to.file.getvalue()


def entry(run):
    (found,) = [p for p in json.loads(dumps(as_json(load(run), run)))["programs"] if p["target"] == "v5e:4x4"]
    return found


def test_a_compiled_program_stands_beside_the_one_that_ran(tmp_path):
    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run))
    text, data = page(run), entry(run)
    assert "Compiled for v5e:4x4" in text and "compiled in 2.5 s" in text and "3.0 GiB of 15.8 GiB" in text
    assert "lowering for targets delayed the program by 0.25 s (1 lowering)" in text
    assert (data["of"], data["state"], data["num_partitions"]) == ("c0de", "ok", 16)
    assert data["function"].startswith("train_step@") and data["compiler"] == "libtpu 0.0.42"
    memory = data["memory"]
    assert (memory["peak_bytes"], memory["fits"], memory["capacity_bytes"]) == (
        3 * GIB,
        True,
        int(15.75 * GIB),
    )
    assert as_json(load(run), run)["run"]["targets"][0]["name"] == "v5e:4x4"


@pytest.mark.parametrize(
    ("peak", "told"),
    [
        (3, "temporaries 2.0 GiB = 3.0 GiB on a device"),
        (
            4,
            "temporaries 2.0 GiB + 1.0 GiB of other buffers, such as constants = 4.0 GiB on a device",
        ),
        (2, "temporaries 2.0 GiB - 1.0 GiB not live at the same time = 2.0 GiB on a device"),
    ],
)
def test_what_the_compilers_peak_has_beside_its_parts_is_named(tmp_path, peak, told):
    run = recorded(tmp_path / "r")
    Compiler(run).say(msgspec.structs.replace(done(run), peak_bytes=peak * GIB))
    loaded = load(run)
    (p,) = loaded.retargeted.values()
    to = console(io.StringIO())
    to.width = 200
    layout.put(to, targets.whole(loaded, p, Places(loaded)))
    assert told in " ".join(to.file.getvalue().split())


def test_it_is_no_program_of_the_runs_own(tmp_path):
    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run))
    found = load(run)
    assert list(found.programs) == ["c0de"] and list(found.retargeted) == ["7a67"]
    assert found.retargeted["7a67"].of is found.programs["c0de"] and len(found.processes) == 1


def test_one_that_does_not_fit_says_by_how_much_and_what_fills_it(tmp_path):
    message = "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (28.75G) exceeds available HBM (15.75G)."
    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run, "exhausted", error=message))
    text, data = page(run), entry(run)
    assert "does not fit: 28.8 GiB in 15.8 GiB" in text and "4.0 MiB  argument state.params['dense']" in text
    assert data["memory"]["fits"] is False and data["memory"]["used_bytes"] == int(28.75 * GIB)
    assert (
        data["memory"]["by_path"][0]["path"] == "state.params['dense']"
        and data["memory"]["temp_bytes"] is None
    )


def test_one_that_compiles_but_is_larger_than_a_device_does_not_fit_either(tmp_path):
    run = recorded(tmp_path / "r")
    Compiler(run).say(msgspec.structs.replace(done(run), peak_bytes=20 * GIB))
    assert "does not fit: 20.0 GiB in 15.8 GiB" in page(run) and entry(run)["memory"]["fits"] is False


@pytest.mark.parametrize(
    "event, said",
    [
        (None, "waiting for the compiler"),
        (ev.TargetCompiling(program="7a67", target="v5e:4x4"), "compiling"),
        (
            ev.TargetCompiled(program="7a67", outcome="crashed", error="died of SIGSEGV"),
            "the compiler crashed: died of SIGSEGV",
        ),
        (
            ev.TargetCompiled(program="7a67", outcome="failed", error="INTERNAL: \x1b[31mbad"),
            "not compiled: INTERNAL: ",
        ),
        (
            ev.TargetCompiled(program="7a67", outcome="missing", error="pip install 'jaxscope[tpu]'"),
            "jaxscope[tpu]",
        ),
        (ev.TargetCompiled(program="7a67", outcome="from the future"), "v5e:4x4"),
    ],
)
def test_what_became_of_it_is_reported_and_nothing_else_claimed(tmp_path, event, said):
    run = recorded(tmp_path / "r", *([event] if event else []))
    text, data = page(run), entry(run)
    assert said in text and "\x1b" not in text
    assert data["memory"]["peak_bytes"] is None and data["memory"]["fits"] is None and data["hlo"] is None


@pytest.mark.parametrize("outcome", ["failed", "crashed"])
def test_where_the_compiler_fails_on_a_slice_that_no_page_lists_it_is_reported_beside_the_error(
    tmp_path, outcome
):
    run = recorded(tmp_path / "r", ev.TargetCompiled(program="7a67", outcome=outcome, error="RET_CHECK"))
    assert "no page lists" not in page(run)
    for path in run.events.iterdir():
        path.write_text(path.read_text().replace("v5e:4x4", "v5e:4x6"))
    text = " ".join(page(run).split())
    assert "(no page lists a slice v5e:4x6; near it: v5e:4x8, v5e:4x4, v5e:8x8): RET_CHECK" in text


def test_one_whose_compiler_ended_does_not_wait_for_ever_and_says_how_to_go_on(tmp_path):
    run = recorded(tmp_path / "r", ev.TargetCompiling(program="7a67", target="v5e:4x4"))
    jobs = Queue(run)
    jobs.put(Job(id="7a67000000000000", target=V5E, partitions=16), b"")
    for path in run.events.iterdir():  # the id of a job has sixteen digits
        path.write_text(path.read_text().replace('"7a67"', '"7a67000000000000"'))
    assert "compiling" in page(run) and "--rest" not in page(run)
    tail = Tail(run)
    tail.poll()
    for path in jobs.path.iterdir():
        os.utime(path, (1, 1))
    text = page(run)
    assert "not compiled: the compiler's process has ended" in text
    assert "1 program not compiled for a target. To compile again: jaxscope compile --rest" in " ".join(
        text.split()
    )
    assert entry(run)["state"] == "abandoned" and entry(run)["hlo"] is None
    before = tail.run.version
    assert tail.read().news  # a view that follows hears of it, though nothing is new in the log
    batch = Tail(run).read()
    tail.take(batch)
    assert tail.run.version > before and tail.run.retargeted["7a67000000000000"].state == "abandoned"
    jobs.beat()
    assert entry(run)["state"] == "compiling"


def test_the_latest_answer_counts_where_it_was_requested_again(tmp_path):
    run = recorded(tmp_path / "r")
    lost = ev.TargetCompiled(program="7a67", target="v5e:4x4", outcome="crashed", error="died of SIGKILL")
    for event in (lost, done(run)):
        Compiler(run).say(event)
    events = [e for e in reader.read(run) if isinstance(e, ev.TargetCompiled)]
    assert events[0].t_ns < events[1].t_ns
    for order in (events, events[::-1]):
        folded = Run()
        for event in order:
            folded.apply(event, "log")
        assert folded.retargeted["7a67"].state == "ok"


def test_a_function_that_is_none_of_the_platforms_is_named_with_the_reason(tmp_path):
    run = recorded(tmp_path / "r", skipped="NotImplementedError: no rule for 'eigh' on tpu")
    assert "not lowered: NotImplementedError: no rule for 'eigh' on tpu" in page(run)
    assert entry(run)["state"] == "skipped" and entry(run)["skipped"].startswith("NotImplementedError")


def test_a_script_with_its_own_number_of_devices_differs_from_the_target(tmp_path):
    text = page(recorded(tmp_path / "r", devices=8))
    assert "the script ran on 8 devices" in text and "v5e:4x4 has 16" in text


def test_the_two_logs_may_be_read_in_any_order(tmp_path):
    run = recorded(tmp_path / "r", ev.TargetCompiling(program="7a67", target="v5e:4x4"))
    Compiler(run).say(done(run))
    logs = {p.name: [] for p in run.logs()}
    for name, event in reader.Reader(run).entries(None):
        logs.setdefault(name, []).append((name, event))
    whole = [v for v in logs.values() if v]
    assert len(whole) == 3
    seen = set()
    for order in itertools.permutations(whole):
        folded = Run()
        for name, event in itertools.chain(*order):
            folded.apply(event, name)
        p = folded.retargeted["7a67"]
        seen.add((p.state, p.target, p.of.id, p.function.name, p.texts["hlo"], len(folded.processes)))
    assert len(seen) == 1


def test_two_targets_stand_side_by_side(tmp_path):
    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run))
    log = Log(run, pid=1000)
    v6e = machines.parse("v6e:4x4")
    log.say(ev.TargetsWanted(targets=[v6e]))
    log.call = 1
    log.say(ev.Retargeted(call=1, target="v6e:4x4", program="7a68", of="c0de", partitions=16))
    Compiler(run).say(
        msgspec.structs.replace(done(run), program="7a68", target="v6e:4x4", peak_bytes=40 * GIB)
    )
    found = load(run)
    found.retargeted["7a68"].compilations[:] = found.retargeted["7a67"].compilations  # of the same call
    to = console(io.StringIO())
    to.width = 100
    render(found, to, run)
    text = to.file.getvalue()
    assert re.search(r"v5e:4x4 +v6e:4x4", text)
    assert re.search(r"memory per device +3\.0 GiB of 15\.8 GiB +40\.0 GiB of 31\.2 GiB: does not fit", text)


def test_the_texts_of_a_target_are_dumped_beside_the_programs_own(tmp_path):
    from jaxscope.report.dump import dump

    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run))
    found = load(run)
    (written_,) = dump(found, run, list(found.functions.values()), tmp_path / "out")
    names = [f.name for f in written_.files]
    assert "train_step.1.v5e-4x4.hlo.txt" in names and "train_step.1.v5e-4x4.stablehlo.mlir" in names
    assert (tmp_path / "out" / "train_step.1.v5e-4x4.hlo.txt").read_text() == HLO


def test_a_functions_own_page_has_its_program_for_the_target(tmp_path):
    from jaxscope.report.function import render_function

    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run))
    to = console(io.StringIO())
    render_function(load(run), "train_step", to, run)
    assert "Compiled for v5e:4x4" in to.file.getvalue() and "1 instructions" in to.file.getvalue()


def test_the_summary_at_the_end_names_each_target(tmp_path):
    from jaxscope.report.text import summary

    run = recorded(tmp_path / "r")
    Compiler(run).say(done(run))
    assert "for v5e:4x4: train_step" in summary(run)


NAMES = st.sampled_from(["7a67", "", "\x1b[31m", "a" * 40])
NUMBERS = st.none() | st.integers(-(2**62), 2**62)
TARGETS = st.builds(
    Target, name=st.sampled_from(["v5e:4x4", "\x1b]0;x\x07", "h100:2x8"]), machine=st.sampled_from(["v5e", "h100", "?"]),
    platform=st.sampled_from(["tpu", "cuda", ""]), grid=st.lists(st.integers(-2, 9), max_size=3).map(tuple),
    slices=st.integers(-1, 3), devices=st.integers(-1, 99),
)  # fmt: skip
EVENTS = st.lists(
    st.builds(ev.TargetsWanted, targets=st.lists(TARGETS, max_size=2), forced=NUMBERS)
    | st.builds(
        ev.Retargeted, call=st.integers(0, 3), target=st.sampled_from(["v5e:4x4", "h100:2x8", "\x1b[2J"]),
        program=st.none() | NAMES, of=st.none() | NAMES, seconds=st.none() | st.floats(), skipped=st.none() | st.text(max_size=9),
        stablehlo=st.none() | st.just("blob"), partitions=NUMBERS, donated=st.lists(st.text(max_size=3), max_size=2),
    )
    | st.builds(ev.TargetCompiling, program=NAMES)
    | st.builds(
        ev.TargetCompiled, program=NAMES, outcome=st.sampled_from(["ok", "exhausted", "late", "?"]), seconds=st.none() | st.floats(),
        text=st.none() | st.just("hlo"), memory=st.none() | st.builds(Memory, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
        peak_bytes=NUMBERS, error=st.none() | st.just("RESOURCE_EXHAUSTED: temporaries (9.9G) exceeds") | st.text(max_size=9),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=150)
@given(EVENTS)
def test_no_log_is_too_odd_to_be_read(events):
    run = Run()
    run.texts_of = lambda p: programs.analyze(
        HLO if "hlo" in p.texts else None, STABLEHLO if p.target_lowered else None
    )
    for event in events:
        run.apply(event, "log")
    to = console(io.StringIO())
    render(run, to)
    for control in ("\x1b]0;", "\x07", "\x1b[31m", "\x1b[2J"):
        assert control not in to.file.getvalue()
    json.loads(dumps(as_json(run)))
