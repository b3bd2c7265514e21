"""Two runs written by hand, or two compilations of one function, and what differs between them."""

from collections import Counter

import msgspec
import pytest
from handwritten_runs import CWD, Log, function, key, leaf, static
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.log import store
from jaxscope.model import diff
from jaxscope.model.changes import Changed, Entry, Item, items
from jaxscope.model.load import load
from jaxscope.model.metrics import Difference
from jaxscope.schema.keys import Frame, Sharding

STABLEHLO = """#loc1 = loc("{file}":{line}:4 to :9)
module @jit_step attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: tensor<8xf32>{donated} loc("x")) -> (tensor<8xf32>) {{
    %0 = stablehlo.cosine %arg0 : tensor<8xf32> loc(#loc1)
{more}    return %0 : tensor<8xf32> loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc = loc(unknown)
"""
HLO = """HloModule jit_step, is_scheduled=true, num_partitions=8

FileNames
1 "{file}"

FunctionNames
1 "step"
2 "loss"

FileLocations
1 {{file_name_id=1 function_name_id=1 line={line} end_line={line} column=4 end_column=9}}
2 {{file_name_id=1 function_name_id=2 line=50 end_line=50 column=4 end_column=9}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}
2 {{file_location_id=2 parent_frame_id=1}}

ENTRY %main (p: f32[{n}]) -> f32[{n}] {{
  %p = f32[{n}]{{0}} parameter(0)
{more}  ROOT %cos = f32[{n}]{{0}} cosine(%p), metadata={{op_name="jit(step)/cos" stack_frame_id=1}}
}}
"""
GATHER = '  %ag.{i} = f32[{n}]{{0}} all-gather(%p), channel_id={i}, replica_groups=[1,8]<=[8], dimensions={{0}}, use_global_device_ids=true, metadata={{op_name="jit(step)/cos" stack_frame_id={frame}}}\n'


def hlo(gathers=(), n=64, file=f"{CWD}/train.py", line=31):
    """``gathers``: (elements, frame) of each."""
    more = "".join(GATHER.format(i=i, n=size, frame=f) for i, (size, f) in enumerate(gathers, 1))
    return HLO.format(n=n, file=file, line=line, more=more)


def stablehlo(*, donated="", more="", file=f"{CWD}/train.py", line=31):
    return STABLEHLO.format(file=file, line=line, donated=donated, more=more)


MESH = [Sharding("NamedSharding", "P('data')", "0-7", (("data", 8, "Auto"),), "P('data',)")]


class Making:
    def __init__(self, path):
        self.path = path
        self.n = 0

    def run(self, *compilations, seen=None, pid=1000, **started):
        """``compilations``: (key, program, hlo text, stablehlo text)."""
        self.n += 1
        run = store.create(self.path / f"run{self.n}")
        log = Log(run, pid, **started)
        log.backend(8)
        seen = seen or function("step")
        log.say(seen)
        for k, program, made, lowered in compilations:
            texts = {s: t for s, t in (("hlo", made), ("stablehlo", lowered)) if t is not None}
            log.compiled(seen, k, program=program, texts=texts)
        log.end()
        return load(run)


@pytest.fixture
def making(tmp_path):
    return Making(tmp_path)


def x(n=8, **more):
    return key(leaf("x", n), **{"shardings": MESH, **more})


def only(found):
    (f,) = [f for f in found.functions if f.differs]
    return f


def numbered(run, n):
    (f,) = run.functions.values()
    return dict(run.numbered(f))[n]


def test_a_run_does_not_differ_from_itself_nor_from_its_repetition(making):
    one = making.run((x(), "aa", hlo(), stablehlo()))
    again = making.run((x(), "aa", hlo(), stablehlo()))
    assert not diff.runs(one, one).differs
    assert not diff.runs(one, again).differs


def test_flags_of_the_interpreter_that_nobody_typed_are_no_difference(making):
    one = making.run(argv=["/usr/bin/python3", "-B", "-u", "train.py", "-B"])
    assert not diff.runs(one, making.run(argv=["python", "train.py", "-B"])).facts
    found = diff.runs(one, making.run(argv=["python", "-O", "-m", "train"])).facts
    assert found == {"arguments": ("train.py -B", "-O -m train")}


def test_a_gather_more_is_named_with_axes_bytes_and_line(making):
    a = making.run((x(), "aa", hlo([(64, 1)]), None))
    b = making.run((x(), "bb", hlo([(64, 1), (64, 1)]), None))
    (program,) = only(diff.runs(a, b)).programs
    (changed,) = program.collectives
    assert changed.before is None
    assert (changed.after.kind, changed.after.axes, changed.after.bytes, changed.count) == (
        "all-gather",
        ("data",),
        256,
        1,
    )
    assert (changed.after.source.file, changed.after.source.line) == (f"{CWD}/train.py", 31)
    assert ("instructions", 3, 4) in [(d.what, d.before, d.after) for d in program.instructions]


def test_an_edit_above_moves_lines_and_is_no_difference(making):
    a = making.run((x(), "aa", hlo([(64, 1)]), stablehlo()))
    b = making.run((x(), "bb", hlo([(64, 1)], line=40), stablehlo()))
    (program,) = only(diff.runs(a, b)).programs
    assert program.collectives == []
    assert not program.same  # another StableHLO all the same


def test_a_larger_gather_on_one_line_is_one_change(making):
    run = making.run(
        (x(8), "aa", hlo([(64, 1), (64, 2)]), None), (x(16), "bb", hlo([(128, 1), (64, 2)]), None)
    )
    found = diff.compilations(run, numbered(run, 1), run, numbered(run, 2))
    (changed,) = found.program.collectives
    assert (changed.before.bytes, changed.after.bytes, changed.count) == (256, 512, 1)
    assert [(c.kind, c.path) for c in found.causes] == [("shape", "x")]


def test_a_gather_that_moved_to_another_line_of_one_file_is_reported(making):
    run = making.run((x(8), "aa", hlo([(64, 1)]), None), (x(16), "bb", hlo([(64, 2)]), None))
    gone, came = sorted(
        diff.compilations(run, numbered(run, 1), run, numbered(run, 2)).program.collectives,
        key=lambda c: c.after is not None,
    )
    assert (gone.before.source.line, came.after.source.line) == (31, 50)


def test_another_compiler_makes_another_program_of_the_same_stablehlo(making):
    a = making.run((x(), "aa", hlo([(64, 1)]), stablehlo()))
    b = making.run((x(), "aa", hlo(), stablehlo()), jax="0.10.2")
    found = diff.runs(a, b)
    assert found.facts["jax"] == ("0.12.0.1", "0.10.2")
    (program,) = only(found).programs
    assert program.before == program.after == "aa"
    assert program.collectives[0].after is None


def test_donation_constants_and_operations_by_name(making):
    constant = "    %cst = stablehlo.constant dense<1.0> : tensor<512x512xf32> loc(#loc1)\n"
    a = making.run((x(), "aa", None, stablehlo()))
    b = making.run(
        (x(), "bb", None, stablehlo(donated=" {tf.aliasing_output = 0 : i32}", more=constant)),
    )
    (program,) = only(diff.runs(a, b)).programs
    assert program.ops == [Difference("stablehlo.constant", 0, 1, key="stablehlo.constant")]
    (constant,) = program.constants
    assert (constant.before, constant.bytes_after) == (None, 512 * 512 * 4)
    (donation,) = program.donation
    assert (donation.name, donation.after, donation.bytes_after) == ("x", "aliased", 32)
    assert donation.before.startswith("possible")
    assert program.collectives is None and program.fusions is None  # there is no HLO


def test_a_part_that_one_side_does_not_say_is_not_known_rather_than_equal(making):
    a = making.run((x(), "aa", hlo(), stablehlo()))
    b = making.run((x(), "bb", None, stablehlo()))
    (program,) = only(diff.runs(a, b)).programs
    assert program.ops == []
    assert program.fusions is None and program.collectives is None
    assert program.memory == []


def test_a_damaged_text_is_not_known_either(making):
    a = making.run((x(), "aa", hlo(), None))
    b = making.run((x(), "bb", "no module at all", None))
    assert only(diff.runs(a, b)).programs[0].collectives is None


def test_functions_are_found_again_where_file_and_line_moved(making):
    a = making.run((x(), "aa", None, None), seen=function("Trainer.step", line=10))
    b = making.run((x(), "aa", None, None), seen=function("Trainer.step", "/elsewhere/main.py", 99))
    (f,) = diff.runs(a, b).functions
    assert f.moved and not f.differs
    assert (f.before.seen.line, f.after.seen.line) == (10, 99)


def test_two_of_one_name_keep_their_order_and_three_are_not_guessed(making):
    def run(*lines):
        run = store.create(making.path / f"lambdas{lines}")
        log = Log(run)
        for at in lines:
            log.say(function("main.<lambda>", line=at))
        log.end()
        return load(run)

    def pairs(a, b):
        return {
            tuple(f.seen.line if f is not None else None for f in (d.before, d.after))
            for d in diff.runs(a, b).functions
        }

    assert pairs(run(10, 20), run(15, 25)) == {(10, 15), (20, 25)}
    assert pairs(run(11, 21), run(12, 22, 32)) == {
        (11, None),
        (21, None),
        (None, 12),
        (None, 22),
        (None, 32),
    }


def test_two_made_by_one_factory_are_matched_by_what_they_capture(making):
    def run(home, *losses):
        run = store.create(making.path / home)
        log = Log(run)
        for n, loss in enumerate(losses):
            place = function("make.<locals>.update", f"/{home}/train.py", 7)
            log.say(msgspec.structs.replace(place, function=f"{place.function} {home} {n}", captures=[loss]))
        log.end()
        return load(run)

    found = diff.runs(run("here", "loss=l1", "loss=l2"), run("there", "loss=l2", "loss=l1")).functions
    assert sorted((f.before.seen.captures, f.after.seen.captures) for f in found) == [
        (["loss=l1"], ["loss=l1"]),
        (["loss=l2"], ["loss=l2"]),
    ]


def test_one_more_recompile_is_counted_under_its_cause(making):
    a = making.run((x(8), "aa", None, None), (x(9), "bb", None, None))
    b = making.run((x(8), "aa", None, None), (x(9), "bb", None, None), (x(10), "cc", None, None))
    f = only(diff.runs(a, b))
    assert f.counts == {"traces": (2, 3), "lowerings": (2, 3), "compiled": (2, 3)}
    assert [(c.kind, c.path, c.before, c.after) for c in f.causes] == [("shape", "x", 1, 2)]
    (program,) = f.programs
    assert (program.before, program.after) == (None, "cc")


def test_a_function_that_only_one_run_has(making):
    a = making.run((x(), "aa", None, None))
    b = making.run((x(), "aa", None, None), seen=function("other"))
    assert {(f.before is None, f.after is None) for f in diff.runs(a, b).functions} == {
        (True, False),
        (False, True),
    }


def test_numbers_of_objects_and_hashes_of_texts_mean_nothing_in_another_process(making):
    def k(serial, hash):
        return x(function_object=serial, static=[static("mode", "greedy", hash=hash, serial=serial)])

    a, b = making.run((k(1, 11), "aa", None, None)), making.run((k(7, 22), "aa", None, None), pid=1001)
    assert diff.compilations(a, numbered(a, 1), b, numbered(b, 1)).causes == []
    one = making.run((k(1, 11), "aa", None, None), (k(7, 22), "aa", None, None))
    assert diff.compilations(one, numbered(one, 1), one, numbered(one, 2)).causes != []


def test_a_key_that_was_not_read_is_not_a_key_that_is_equal(making):
    run = making.run((x(), "aa", None, None), (None, "aa", None, None))
    assert diff.compilations(run, numbered(run, 1), run, numbered(run, 2)).causes is None


def test_the_latest_two_programs_in_a_row_that_differ(making):
    run = making.run(*((x(n), p, None, None) for n, p in ((1, "a"), (2, "b"), (3, "b"), (4, "c"), (5, "c"))))
    (f,) = run.functions.values()
    assert diff.changed_programs(run, f) == (3, 4)
    alone = making.run((x(), "a", None, None), (x(2), "a", None, None))
    assert diff.changed_programs(alone, *alone.functions.values()) is None


FRAMES = st.sampled_from(
    [None, Frame("a.py", 1, "f"), Frame("a.py", 2, "f"), Frame("a.py", 9, "g"), Frame("b.py", 1, "f")]
)
ITEMS = st.lists(
    st.builds(
        Item,
        st.sampled_from(["all-gather", "all-reduce"]),
        st.sampled_from([None, (), ("data",)]),
        st.sampled_from([None, 4, 8]),
        st.sampled_from([None, 1, 3]),
        st.just(None),
        FRAMES,
    ),
    max_size=12,
)


def loosely(i):
    return i.kind, i.axes, i.bytes, i.executions


@given(ITEMS, ITEMS, st.booleans())
def test_what_came_and_went_turns_the_one_into_the_other(before, after, one_source):
    found = items(before, after, one_source=one_source)
    key = (lambda i: i) if one_source else loosely
    total = Counter(map(key, before))
    for c in found:
        assert c.count > 0 and c.before != c.after
        if c.before is not None:
            total[key(c.before)] -= c.count
        if c.after is not None:
            total[key(c.after)] += c.count
    assert +total == Counter(map(key, after))
    assert min(total.values(), default=0) >= 0


@given(ITEMS, st.booleans())
def test_the_order_of_a_text_is_no_difference(before, one_source):
    assert items(before, before[::-1], one_source=one_source) == []


@given(ITEMS)
def test_of_two_versions_of_a_file_only_what_is_there_counts(before):
    moved = [
        msgspec.structs.replace(i, source=i.source and Frame(i.source.file, i.source.line + 7, "h"))
        for i in before
    ]
    assert items(before, moved, one_source=False) == []


def test_changes_are_data():
    assert msgspec.to_builtins(Changed(None, Item("loop"), 2))["count"] == 2
    assert Entry("x", None, "aliased").bytes_before is None
