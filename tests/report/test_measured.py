"""What a profile measured, by the user's line: hand-written profiles of the program in screen_runs."""

import json

import handwritten_runs
import pytest
import screen_runs
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import measured
from jaxscope.model.load import load
from jaxscope.present.text import Places, short_seconds
from jaxscope.report import contract, html, json_report, text
from jaxscope.report.measured import section
from jaxscope.schema import events as ev
from jaxscope.schema.profiles import InstructionTime

MS = 1_000_000
TEXTS = screen_runs.texts("/tmp/train.py")


def took(name, ms, module="jit_train_step", program=4):
    return InstructionTime(module, name, program, 6, int(ms * MS))


def profiled(path, *times, texts=(TEXTS,), **more):
    """A run with a program for each of ``texts``, and a profile of steps 3 to 5 on two devices."""
    run = store.create(path, name="train", argv=["train.py"])
    log = Log(run)
    step = function("train_step", "/tmp/train.py", 10)
    log.say(step)
    for n, text_ in enumerate(texts):
        log.compiled(step, key(leaf("x", n + 2)), (0.1, 0.1, 1.0), program=f"p{n}", texts=text_)
    facts = {
        "first_step": 3,
        "last_step": 5,
        "devices": 2,
        "seconds": 0.6,
        "file": "profile/x.xplane.pb",
        **more,
    }
    log.say(ev.Profiled(instructions=list(times), **facts))
    log.end()
    handwritten_runs.exited(run, 0, seconds=9.0)
    return run


USUAL = (took("dot.1", 120), took("fusion.1", 36), took("all-reduce.1", 6), took("copy.9", 0.006))


def printed(run, **more):
    return [line.text.plain for line in section(run, Places(run), **more)]


def test_seconds_are_of_one_step_on_one_device_by_line(tmp_path):
    run = load(profiled(tmp_path / "run", *USUAL))
    [m] = measured.profiles(run)
    found = [(s.line and s.line.line, round(s.seconds, 9), list(s.opcodes)) for s in m.lines]
    # 3 steps on 2 devices; copy.9 is not in the text
    assert found == [(5, 0.02, ["dot"]), (6, 0.007, ["fusion", "all-reduce"]), (None, 0.000001, ["copy"])]
    assert m.seconds == pytest.approx(0.2) and m.device_seconds == pytest.approx(0.027001)


def test_a_loop_is_not_counted_beside_what_it_runs(tmp_path):
    run = load(profiled(tmp_path / "run", *USUAL, took("while.3", 500), took("conditional.clone", 9)))
    assert measured.profiles(run)[0].device_seconds == pytest.approx(0.027001)


def test_a_line_on_which_programs_of_one_name_do_not_agree_is_not_known(tmp_path):
    moved = {stage: t.replace("source_line=5", "source_line=7") for stage, t in TEXTS.items()}
    run = load(profiled(tmp_path / "run", *USUAL, texts=(TEXTS, moved)))
    lines = {s.line and s.line.line: s.opcodes for s in measured.profiles(run)[0].lines}
    assert lines.keys() == {6, None} and "dot" in lines[None]


def test_a_program_that_lacks_a_profiled_instruction_is_another_one(tmp_path):
    other = {
        stage: t.replace("dot.1", "dot.7").replace("source_line=6", "source_line=9")
        for stage, t in TEXTS.items()
    }
    run = load(profiled(tmp_path / "run", *USUAL, texts=(TEXTS, other)))
    assert {s.line and s.line.line for s in measured.profiles(run)[0].lines} == {5, 6, None}


KERNELS = """HloModule jit_train_step, is_scheduled=true

FileNames
1 "/tmp/train.py"

FunctionNames
1 "train_step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=6 end_line=6 column=1 end_column=9}

StackFrames
1 {file_location_id=1}
2 {file_location_id=2}

%tanh_of_8 (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  ROOT %t = f32[8] tanh(%p)
}

%tanh_of_8.1 (p.1: f32[8]) -> f32[8] {
  %p.1 = f32[8] parameter(0)
  ROOT %t.1 = f32[8] tanh(%p.1)
}

%added (p.2: f32[8]) -> f32[8] {
  %p.2 = f32[8] parameter(0)
  ROOT %a = f32[8] add(%p.2, %p.2)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %dot.3 = f32[8] custom-call(%x), custom_call_target="__cublas$gemm", metadata={stack_frame_id=1}
  %wrapped_tanh = f32[8] fusion(%dot.3), kind=kLoop, calls=%tanh_of_8, metadata={stack_frame_id=1}
  %wrapped_tanh.1 = f32[8] fusion(%wrapped_tanh), kind=kLoop, calls=%tanh_of_8.1, metadata={stack_frame_id=2}
  ROOT %loop_add_fusion.2 = f32[8] fusion(%wrapped_tanh.1), kind=kLoop, calls=%added, metadata={stack_frame_id=2}
}
"""


def kernel(name, ms):
    """A kernel of a CUDA graph, which the profile calls ``command_buffer_1``."""
    return InstructionTime("jit_train_step", "command_buffer_1", 4, 6, int(ms * MS), name)


@pytest.mark.parametrize(
    ("name", "line", "kind"),
    [
        ("loop_add_fusion_2", 6, "fusion"),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n", 5, "custom-call"),  # all library calls are on line 5
        ("wrapped_tanh_1", None, "fusion"),  # one kernel for equal fusions on lines 5 and 6
        ("memset_3", None, "memset"),
    ],
)
def test_a_kernel_of_a_cuda_graph_has_the_line_of_its_instruction(tmp_path, name, line, kind):
    texts = {"hlo": KERNELS, "stablehlo": TEXTS["stablehlo"]}
    run = load(profiled(tmp_path / "run", kernel(name, 6), kernel("loop_add_fusion_2", 1), texts=(texts,)))
    lines = {s.line and s.line.line: s.opcodes for s in measured.profiles(run)[0].lines}
    assert kind in lines[line]


def test_instructions_of_another_module_have_no_line(tmp_path):
    run = load(profiled(tmp_path / "run", took("dot.1", 1, module="jit_other")))
    assert [s.line for s in measured.profiles(run)[0].lines] == [None]


def test_the_report_shows_lines_with_their_share_and_the_profile_for_xprof(tmp_path):
    found = printed(load(profiled(tmp_path / "run", *USUAL)))
    assert found[1] == "Measured operations  steps 3 to 5: 27 ms on each device of 0.20 s in one step"
    assert found[2].startswith("/tmp/train.py:5 in") and found[2].endswith("dot")
    assert found[3].endswith("fusion and all-reduce")
    assert found[-2:] == [
        "and 1 more line, 1.0 µs: --all shows them",
        "the profile for xprof: profile/x.xplane.pb",
    ]
    everything = printed(load(profiled(tmp_path / "two", *USUAL)), everything=True)
    assert "an unknown line  copy" in everything


def test_what_a_profile_does_not_have_is_said(tmp_path):
    found = printed(load(profiled(tmp_path / "run", file=None, seconds=None, devices=None, left_out=7)))
    assert found[1:] == [
        "Measured operations  steps 3 to 5: 0 s on all devices together in one step",
        "7 further instructions, the fastest, not recorded",
        "the profile names no operations of a compiled program",
    ]


def test_json_has_the_lines_and_fits_the_schema(tmp_path):
    from jsonschema import Draft202012Validator

    run = profiled(tmp_path / "run", *USUAL)
    document = json.loads("".join(json_report.pieces(load(run), run)))
    Draft202012Validator(contract.schema()).validate(document)
    [profile] = document["profiles"]
    assert (profile["first_step"], profile["last_step"], profile["devices"]) == (3, 5, 2)
    assert profile["lines"][0]["source"]["line"] == 5 and profile["lines"][2]["source"] is None
    other = screen_runs.typical(tmp_path / "other")
    assert json.loads("".join(json_report.pieces(load(other), other)))["profiles"] == []


def test_the_html_report_has_them_beside_the_source_and_its_costs(tmp_path):
    run = profiled(tmp_path / "run", *USUAL)
    made = "".join(html.pieces(load(run), run))
    assert ">Measured operations</h2>" in made and "measured in a step</th>" in made
    assert '<td class="figure">20\N{NO-BREAK SPACE}ms</td>' in made
    without = screen_runs.typical(tmp_path / "other")
    assert "easured" not in "".join(html.pieces(load(without), without)).partition("<main>")[2]


def test_names_of_the_program_are_escaped(tmp_path):
    hostile = screen_runs.HOSTILE
    run = profiled(tmp_path / "run", took(hostile, 3, module=hostile), file=hostile)
    shown = "\n".join(printed(load(run), everything=True))
    assert "evil" in shown and "\x1b" not in shown and "\u202e" not in shown
    assert "\x1b" not in text.summary(run)


@pytest.mark.parametrize("number", [-(10**400), -1, 0, 10**400])
def test_a_damaged_profile_is_printed(number, tmp_path):
    run = load(profiled(tmp_path / "run", *USUAL))
    [process] = [p for p in run.processes.values() if p.profiles]
    damaged = InstructionTime("jit_train_step", "dot.1", number, number, number)
    process.profiles[0] = ev.Profiled(
        first_step=number, last_step=-number, devices=number, seconds=float("nan"), instructions=[damaged]
    )
    assert printed(run, everything=True)[1].startswith("Measured operations")


@pytest.mark.parametrize(
    ("value", "text_"),
    [
        (0.02, "20 ms"),
        (0.0041, "4.1 ms"),
        (0.000412, "412 µs"),
        (5e-6, "5.0 µs"),
        (1e-9, "<0.1 µs"),
        (0, "0 s"),
    ],
)
def test_times_below_a_millisecond_are_written(value, text_):
    assert short_seconds(value) == text_
