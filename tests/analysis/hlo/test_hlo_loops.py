"""Trip counts and executions, without a compiler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.hlo import loops
from jaxscope.analysis.hlo.program import analyze

LOOP = """HloModule jit_f, num_partitions=8

%body (p: (s32[], f32[4], s32[])) -> (s32[], f32[4], s32[]) {{
  %p = (s32[], f32[4], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[4] get-tuple-element(%p), index=1
  %n = s32[] get-tuple-element(%p), index=2
  %step = s32[] constant({step})
  %next = s32[] {op}(%i, %step)
  %sum = f32[4] all-reduce(%x), channel_id=1, replica_groups={{}}, use_global_device_ids=true, to_apply=%add
  ROOT %t = (s32[], f32[4], s32[]) tuple(%next, %sum, %n)
}}

%cond (q: (s32[], f32[4], s32[])) -> pred[] {{
  %q = (s32[], f32[4], s32[]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %m = s32[] get-tuple-element(%q), index=2
  %k = s32[] constant({bound})
  ROOT %c = pred[] compare({test}), direction={direction}
}}

ENTRY %main (x: f32[4]) -> f32[4] {{
  %x.1 = f32[4] parameter(0)
  %start = s32[] constant({start})
  %end = s32[] constant({bound})
  %in = (s32[], f32[4], s32[]) tuple(%start, %x.1, %end)
  %w = (s32[], f32[4], s32[]) while(%in), condition=%cond, body=%body
  ROOT %out = f32[4] get-tuple-element(%w), index=1
}}
"""


def loop(start=0, bound=10, step=1, direction="LT", op="add", test="%j, %k"):
    return LOOP.format(start=start, bound=bound, step=step, direction=direction, op=op, test=test)


def rounds(start, bound, step, direction):
    """The loop, run."""
    compare = {
        "LT": lambda a, b: a < b,
        "LE": lambda a, b: a <= b,
        "GT": lambda a, b: a > b,
        "GE": lambda a, b: a >= b,
        "NE": lambda a, b: a != b,
    }[direction]
    for count in range(300):
        if not compare(start, bound):
            return count
        start += step
    return None


@given(
    st.integers(-20, 20),
    st.integers(-20, 20),
    st.integers(-5, 5),
    st.sampled_from(["LT", "LE", "GT", "GE", "NE"]),
    st.sampled_from(["%j, %k", "%j, %m"]),
)
def test_counts_equal_those_of_the_loop_when_it_is_run(start, bound, step, direction, test):
    program = analyze(loop(start, bound, step, direction, test=test))
    assert [w.trip_count for w in program.loops] == [rounds(start, bound, step, direction)]
    assert [c.executions for c in program.collectives] == [rounds(start, bound, step, direction)]


def test_the_bound_may_stand_on_the_left_and_the_step_may_be_subtracted():
    assert analyze(loop(0, 10, 2, "GT", test="%k, %j")).loops[0].trip_count == 5
    assert analyze(loop(10, 0, 3, "GT", op="subtract")).loops[0].trip_count == 4


@pytest.mark.parametrize(
    "broken",
    [
        ("%step = s32[] constant(1)", "%step = s32[] copy(%n)"),  # a step that is no constant
        ("tuple(%start,", "tuple(%unknown,"),
        ("tuple(%next,", "tuple(%i,"),  # for ever
        ("index=0\n  %x", "index=77\n  %x"),
        ("ROOT %c", "%c"),
        ("direction=LT", "direction=EQ"),
        ("direction=LT", "direction=WHAT"),
        (", body=%body", ""),
        (", body=%body", ", body=%gone"),
        ("constant(10)", "constant(1e9)"),
    ],
)
def test_a_count_that_cannot_be_reported_is_unknown(broken):
    found = analyze(loop().replace(*broken)).loops
    assert [(w.trip_count, w.how) for w in found] == [(None, None)]


def test_a_printed_count_is_believed():
    text = loop(step=0).replace(
        "body=%body\n", 'body=%body, backend_config={"known_trip_count":{"n":"6"},"x":{}}\n'
    )
    assert [(w.trip_count, w.how) for w in analyze(text).loops] == [(6, "printed")]


@pytest.mark.parametrize("count", ['"-3"', '"x"', "[]", "null", "true", '"9999999999999999999999"'])
def test_a_printed_count_that_makes_no_sense_is_not(count):
    text = loop(step=0).replace(
        "body=%body\n", f'body=%body, backend_config={{"known_trip_count":{{"n":{count}}}}}\n'
    )
    assert analyze(text).loops[0].trip_count is None


def test_absurdly_many_rounds_are_unknown_not_a_number_of_a_thousand_digits():
    parts = ["HloModule m, num_partitions=2"]
    for depth in range(60):
        inner = (
            f"%w{depth} = f32[4] while(%p), condition=%c{depth + 1}, body=%b{depth + 1}, "
            'backend_config={"known_trip_count":{"n":"999999999"}}'
        )
        for kind in "bc":
            parts.append(
                f"%{kind}{depth} (p: f32[4]) -> f32[4] {{\n  %p = f32[4] parameter(0)\n  ROOT {inner}\n}}"
            )
    parts.append(
        "%b60 (p: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n"
        "  ROOT %a = f32[4] all-reduce(%p), replica_groups={}, to_apply=%add\n}"
    )
    parts.append(
        "ENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n  ROOT %c = f32[4] call(%p), to_apply=%b0\n}"
    )
    program = analyze("\n\n".join(parts))
    assert [c.executions for c in program.collectives] == [None]


def test_calls_in_a_circle_end_in_a_problem():
    text = """HloModule m

%f (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %c = f32[] call(%p), to_apply=%g
}

%g (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  ROOT %d = f32[] call(%q), to_apply=%f
}

ENTRY %e (r: f32[]) -> f32[] {
  %r = f32[] parameter(0)
  %s = f32[] all-reduce(%r), replica_groups={}, to_apply=%add
  ROOT %h = f32[] call(%s), to_apply=%f
}
"""
    program = analyze(text)
    assert any("calls itself" in p.text for p in program.problems)
    assert [c.executions for c in program.collectives] == [1]


@given(st.integers(-(10**18), 10**18), st.integers(-(10**18), 10**18), st.integers(-9, 9))
def test_iterations_never_loops_itself(start, bound, step):
    count = loops.iterations(start, bound, step, "LT")
    assert count is None or count >= 0


def typed(kind, printed="", **settings):
    """The loop with a counter of this type; ``printed`` is what XLA says about it."""
    text = loop(**settings).replace("s32[]", f"{kind}[]")
    return text.replace("body=%body\n", f"body=%body, backend_config={{{printed}}}\n")


@pytest.mark.parametrize(
    ("kind", "start", "bound", "step", "direction", "count"),
    [
        ("u32", 9, 0, 4294967295, "GT", 9),  # XLA writes i - 1 so
        ("u8", 200, 3, 254, "GE", 99),
        ("u32", 9, 0, 4294967295, "GE", None),  # it goes around zero
        ("u32", 5, 8, 4294967295, "LT", None),
        ("u8", 0, 254, 3, "LT", 85),
        ("u8", 1, 254, 4, "LT", None),  # 253 and 4 are 1
        ("s8", 100, -100, -9, "GE", 23),
        ("s8", 100, -125, -9, "GE", None),
        ("s64", 0, 4294967296, 4294967295, "LT", 2),
    ],
)
def test_a_counter_stays_within_its_type(kind, start, bound, step, direction, count):
    text = typed(kind, start=start, bound=bound, step=step, direction=direction)
    assert [w.trip_count for w in analyze(text).loops] == [count]


def test_a_count_printed_for_an_unsigned_counter_that_goes_down_is_not_believed():
    """XLA of JAX 0.10 and 0.12 prints 1, and the program iterates nine times."""
    said = (
        '"known_induction_variable":{"tuple_index":"0"},"known_init_step":{"init":"9","step":"4294967295"},'
        '"known_trip_count":{"n":"1"}'
    )
    down = {"start": 9, "bound": 0, "step": 4294967295, "direction": "GT"}
    found = analyze(typed("u32", said, **down)).loops
    assert [(w.trip_count, w.how) for w in found] == [(9, "inferred")]
    assert analyze(typed("s64", said, **down)).loops[0].how == "printed"


@pytest.mark.parametrize(
    ("counter", "compared", "count"),
    [
        ("s32", "u8", None),  # 300 would be 44
        ("s32", "s16", None),
        ("s32", "u32", None),
        ("s32", "bf16", None),  # which has no 257
        ("s32", "f32", 10),
        ("s32", "s64", 10),
        ("u8", "s32", 10),
    ],
)
def test_a_counter_is_followed_through_a_conversion_that_keeps_it(counter, compared, count):
    text = loop(test="%small, %k").replace("s32[]", f"{counter}[]")
    text = text.replace(
        f"  %k = {counter}[] constant",
        f"  %small = {compared}[] convert(%j)\n  %k = {compared}[] constant",
    )
    assert [w.trip_count for w in analyze(text).loops] == [count]


@pytest.mark.parametrize(
    ("compared", "start", "bound", "count"),
    [
        ("f32", 16777200, 16777216, 16),  # 2**24
        ("f32", 16777210, 16777218, None),  # 16777217 has no f32: it is rounded to 16777216
        ("f32", -16777220, -16777210, None),
        ("f64", 16777210, 16777218, 8),
    ],
)
def test_a_float_has_all_integers_up_to_a_limit(compared, start, bound, count):
    text = loop(start=start, bound=bound, test="%float, %k").replace(
        "  %k = s32[] constant",
        f"  %float = {compared}[] convert(%j)\n  %k = {compared}[] constant",
    )
    assert [w.trip_count for w in analyze(text).loops] == [count]


def test_a_constant_that_a_float_does_not_have_is_no_bound():
    text = loop(bound=16777217, test="%j, %back")
    text = text.replace(
        "  ROOT %c = pred", "  %float = f32[] convert(%k)\n  %back = s32[] convert(%float)\n  ROOT %c = pred"
    )
    assert [w.trip_count for w in analyze(text).loops] == [None]
    assert [w.trip_count for w in analyze(text.replace("16777217", "16777216")).loops] == [16777216]
