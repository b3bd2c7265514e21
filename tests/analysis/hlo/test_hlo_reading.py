"""Reading modules: dialects, and texts that are cut, damaged or no HLO at all."""

from __future__ import annotations

import pytest
from hlo_cases import TRUTH, case, module

from jaxscope.analysis.hlo.program import analyze
from jaxscope.analysis.hlo.reader import MAX_PROBLEMS, read

SMALL = case("pmap_dp__cpu_jax0102")


def opcodes(text):
    found = read(text)
    return {name: [i.opcode for i in c.instructions] for name, c in found.computations.items()}


def test_every_instruction_is_read():
    found = read(SMALL)
    assert found.name == "jit__fun"
    assert found.instruction_count == SMALL.count(" = ")
    assert found.entry.name == "main.0_spmd"
    assert found.entry.root.name == "subtract_bitcast_fusion"
    assert found.problems == []
    line = SMALL.splitlines()[found.entry.line - 1]
    assert line.startswith("ENTRY %main.0_spmd")


@pytest.mark.parametrize(
    "changed",
    [
        lambda t: t.replace("%", ""),
        lambda t: t.replace("\n", "\r\n"),
        lambda t: "\n" + t + "\n\n\n",
        lambda t: "// dumped by XLA\n" + t,
        lambda t: "\n".join("    " + line for line in t.split("\n")),
        lambda t: t.replace(
            "ENTRY %main.0_spmd (param.2: f32[1,128,128], param.3: f32[1,16,128]) -> f32[1,128,128] {",
            "ENTRY %main.0_spmd {",
        ),
        lambda t: t.replace("}\n\n%", '}, execution_thread="main"\n\n%'),
        lambda t: t.replace(" bitcast(%param.2)", " bitcast(f32[1,128,128]{2,1,0} %param.2)"),
    ],
    ids=["no %", "CRLF", "blank lines", "comment", "indented", "no signature", "threads", "operand shapes"],
)
def test_dialects_say_the_same(changed):
    text = changed(SMALL)
    assert text != SMALL
    assert opcodes(text) == opcodes(SMALL)
    ours, theirs = analyze(SMALL), analyze(text)
    assert theirs.problems == []
    assert theirs.collectives == ours.collectives
    assert theirs.fusions == ours.fusions
    assert theirs.memory == ours.memory
    assert theirs.matrix_flops == ours.matrix_flops


def test_a_value_with_line_breaks_belongs_to_its_instruction():
    text = module(
        "%a = f32[4] parameter(0)",
        '%b = f32[4] custom-call(%a), custom_call_target="k", backend_config={\n  "x": 1,\n  "y": {}\n}',
        "ROOT %c = f32[4] negate(%b)",
    )
    found = read(text)
    assert [i.name for i in found.entry.instructions] == ["a", "b", "c"]
    assert '"y"' in found.entry.instructions[1].tail
    assert found.problems == []


def test_a_line_that_is_no_instruction_is_named_and_the_others_are_read():
    text = module("%a = f32[4] parameter(0)", "this is not HLO", "ROOT %b = f32[4] negate(%a)")
    found = read(text)
    assert [i.name for i in found.entry.instructions] == ["a", "b"]
    assert [(p.line, p.text) for p in found.problems] == [(5, "not an instruction: this is not HLO")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no HloModule line"),
        ("\x00\x01\x02", "no HloModule line"),
        ("module @jit_f {\n  func.func public @main() {\n    return\n  }\n}\n", "no HloModule line"),
        ('{"hlo": 1}', "no HloModule line"),
        ("HloModule jit_f\n", "no computation"),
        (SMALL[: SMALL.index("ENTRY")], "no ENTRY"),
        (SMALL[:-200], "closing brace is missing"),
        (SMALL[SMALL.index("\n") :], "no HloModule line"),
        (SMALL + SMALL, "a second module begins here"),
    ],
)
def test_a_text_that_is_cut_or_foreign_says_so(text, problem):
    assert any(problem in p.text for p in analyze(text).problems)


@pytest.mark.parametrize("name", TRUTH)
def test_what_stands_before_the_cut_is_read(name):
    text = case(name)
    whole = analyze(text)
    for part in (0.2, 0.5, 0.9, 0.999):
        found = analyze(text[: int(len(text) * part)])
        assert found.problems
        assert found.instructions <= whole.instructions
    assert found.instructions > 0.8 * whole.instructions


def test_of_many_problems_the_first_are_kept_and_the_others_counted():
    text = module(*["nonsense"] * (MAX_PROBLEMS + 30))
    problems = read(text).problems
    assert len(problems) == MAX_PROBLEMS
    assert problems[-1].text.endswith("(and 30 more)")


def test_the_first_of_two_computations_of_one_name_is_kept():
    one = "%f (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n\n"
    found = read("HloModule m\n\n" + one + one + module("ROOT %a = f32[4] parameter(0)", header=""))
    assert "second computation" in found.problems[0].text
    assert len(found.computations) == 2


def test_metadata_without_tables_gives_its_file_and_line():
    text = module(
        "%a = f32[4] parameter(0)",
        '%b = f32[4] all-reduce(%a), replica_groups={}, to_apply=%add, metadata={op_type="psum" '
        'op_name="jit(f)/shard_map/psum" source_file="/home/me/m.py" source_line=7}',
    )
    (found,) = analyze(text).collectives
    assert (found.source.file, found.source.line, found.origin) == ("/home/me/m.py", 7, "asked")
