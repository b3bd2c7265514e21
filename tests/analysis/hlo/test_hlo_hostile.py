"""Whatever the text, ``analyze`` ends and returns: cut, mutated, shuffled, foreign and random texts."""

from __future__ import annotations

import msgspec
import pytest
from hlo_cases import TRUTH, case, module
from hlo_damage import DAMAGE, damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxscope.analysis.hlo import graph
from jaxscope.analysis.hlo.program import Program, analyze
from jaxscope.analysis.programs import Texts
from jaxscope.report.programs import texts_json

SMALL = [n for n in TRUTH if len(case(n)) < 60_000]
TEXTS = {n: case(n) for n in SMALL}
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def reads(text: str) -> Program:
    program = analyze(text, mesh=[("a", 4), ("b", 2)])
    assert not any("could not be" in p.text for p in program.problems), program.problems  # the last resort
    msgspec.json.encode(texts_json(Texts(program, None)))  # what it says can be written
    graph.of(text)
    return program


@FEW
@given(st.sampled_from(SMALL), st.sampled_from(sorted(DAMAGE)), st.randoms(use_true_random=False))
def test_a_damaged_module_is_read_as_far_as_it_goes(name, kind, random):
    text = damaged(TEXTS[name], kind, random)
    reads(text)


@FEW
@given(st.text(max_size=400))
def test_any_text_is_read(text):
    reads(text)
    reads(module(text))
    reads(f"HloModule {text}\n\nENTRY %e (p: f32[]) -> f32[] {{\n{text}\n}}\n")


@FEW
@given(st.binary(max_size=600))
def test_any_bytes_are_read(data):
    reads(data.decode("latin-1"))
    reads(data.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode())


ATTRIBUTES = st.sampled_from(
    [
        "calls",
        "body",
        "condition",
        "to_apply",
        "replica_groups",
        "metadata",
        "backend_config",
        "index",
        "kind",
    ]
)
SIGNS = st.text(alphabet="{}[]()<>=,'\"\\%a0 :T", max_size=40)


@FEW
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["fusion", "while", "all-reduce", "all-gather-start", "call", "tuple", "compare"]
            ),
            SIGNS,
            st.lists(st.tuples(ATTRIBUTES, SIGNS), max_size=4),
        ),
        max_size=8,
    )
)
def test_any_values_of_attributes_are_read(instructions):
    lines = [
        f"%i{n} = f32[4] {opcode}({inputs})" + "".join(f", {key}={value}" for key, value in attributes)
        for n, (opcode, inputs, attributes) in enumerate(instructions)
    ]
    reads(module(*lines))


BIG = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "HloModule " * BIG,
        "HloModule m\n" * BIG,
        " {\n" * BIG,
        "%f (a: f32[]) -> f32[] {\n" * (BIG // 10),
        "HloModule m\n\n" + "}\n" * BIG,
        module("%a = (" + "(" * BIG),
        module("%a = " + "f32[] " * BIG),
        module("%a = f32[] add(" + "%a, " * BIG),
        module("%a = f32[] fusion(%a)" + ", calls=%a" * BIG),
        module("%a = f32[] all-reduce(%a), metadata={" + 'op_name="a" ' * BIG),
        module("%a = f32[] all-reduce(%a), metadata={" + '"' * BIG),
        module('%a = f32[] all-reduce(%a), metadata={op_name="' + "\\" * BIG),
        module("%a = f32[] all-reduce(%a), replica_groups=" + "{" * BIG),
        module("%a = f32[] all-reduce(%a), replica_groups={" + "{0}," * BIG + "}"),
        module("%a = f32[] all-reduce(%a), replica_groups=mesh['a'=2] {" + "'a'," * BIG + "}"),
        module("%a = f32[] while(%a), backend_config=" + '{"a":' * BIG),
        module("%a = f32[] tuple(%a), backend_config={\n" + "{\n" * BIG),
        "HloModule m\n\nStackFrames\n" + "1 {file_location_id=1 parent_frame_id=1}\n" * BIG,
        "HloModule m\n\nFileNames\n" + '1 "' * BIG,
    ],
    ids=range(19),
)
def test_a_text_made_to_be_slow_is_read_in_one_go(text):
    """Each would take hours if a pattern tried twice; the suite's timeout is the assertion."""
    reads(text)


def test_a_thousand_loops_in_each_other_are_counted():
    parts = ["HloModule m"]
    for depth in range(1000):
        parts.append(
            f"%f{depth} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n"
            f"  ROOT %w{depth} = f32[] while(%p), condition=%f{depth + 1}, body=%f{depth + 1}\n}}"
        )
    parts.append(
        "ENTRY %e (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), to_apply=%f0\n}"
    )
    assert len(reads("\n\n".join(parts)).loops) == 1000


def test_values_that_fan_out_are_followed_up_to_a_limit():
    adds = [f"%s{i} = s32[] add(%s{i - 1}, %s{i - 1})" for i in range(1, 60)]
    text = module("%s0 = s32[] constant(1)", *adds, "%w = s32[] while(%s59), condition=%c, body=%b")
    bodies = (
        "%b (p: s32[]) -> s32[] {\n  %p = s32[] parameter(0)\n  %one = s32[] constant(1)\n"
        "  ROOT %n = s32[] add(%p, %one)\n}\n\n%c (q: s32[]) -> pred[] {\n  %q = s32[] parameter(0)\n"
        "  %k = s32[] constant(9)\n  ROOT %l = pred[] compare(%q, %k), direction=LT\n}\n\n"
    )
    program = reads(text.replace("ENTRY", bodies + "ENTRY"))
    assert [w.trip_count for w in program.loops] == [None]
