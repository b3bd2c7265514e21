"""Limits: how they are written, and what is said where a run has more. On logs and texts written by hand."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.check import budgets, limits
from jaxscope.check.limits import Limits
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.schema import events as ev
from jaxscope.schema.findings import ERROR, NOTE
from jaxscope.schema.keys import Sharding

STEP = function("train_step")
EVAL = function("eval_step", line=120)
ADD = function("add", None, None, eager=True, form="primitive")

HLO = """HloModule jit_train_step, is_scheduled=true, entry_computation_layout={()->f32[8]{0}}, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[2]) -> f32[8] {
  %p = f32[2]{0} parameter(0)
  %g = f32[8]{0} all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(train_step)/jit(main)/gather" source_file="/home/ann/work/train.py" source_line=91}
  ROOT %r = f32[8]{0} all-reduce(%g), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add, metadata={op_name="jit(train_step)/jit(main)/psum" source_file="/home/ann/work/train.py" source_line=92}
}
"""


@pytest.fixture
def log(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    for f in (STEP, EVAL, ADD):
        log.say(f)
    return log


NONE = Limits()


def over(log, allowed=NONE, functions=None, **more):
    return [(f.code, words.title(f)) for f in budgets.findings(load(log.run), allowed, functions, **more)]


def x(n):
    return key(leaf("x", n))


def test_compilations_of_the_users_functions_are_counted_and_the_last_one_explained(log):
    for n in (1, 2, 3):
        log.compiled(STEP, x(n))
    log.compiled(EVAL, x(1))
    for n in range(5):
        log.compiled(ADD, x(n))
    assert over(log, Limits(compilations=4)) == []
    assert over(log, Limits(compilations=3)) == [
        (
            "JX191",
            "your functions were compiled 4 times, 3 allowed (train_step 3 times, eval_step once); "
            "most recently train_step: x changed from f32[2] to f32[3]",
        )
    ]
    assert over(log, functions={"eval*": Limits(compilations=1), "train*": Limits(compilations=2)}) == [
        (
            "JX191",
            "train_step was compiled 3 times, 2 allowed; most recently train_step: x changed from f32[2] to f32[3]",
        )
    ]


def test_seconds_of_the_run_are_wall_time_of_everything_and_of_a_function_its_own(log):
    log.compiled(STEP, x(1), (1.0, 2.0, 4.0))
    log.compiled(ADD, x(1), (0.0, 0.0, 5.0))
    assert over(log, Limits(seconds=12.5)) == []
    ((code, title),) = over(log, Limits(seconds=11))
    assert (
        code == "JX291" and "took 12.0 s, 11.0 s allowed; the slowest: train_step 7.0 s, add 5.0 s" in title
    )
    ((code, title),) = over(log, functions={"train_step": Limits(seconds=6)})
    assert (
        title
        == "train_step was traced, lowered and compiled for 7.0 s, 6.0 s allowed; the longest of 1 compilation took 7.0 s"
    )
    assert over(log, functions={"train_step": Limits(seconds=7.5)}) == []


def test_memory_says_what_it_consists_of(log):
    log.compiled(STEP, x(4), program="aa")
    assert over(log, Limits(temp_bytes=65536, peak_bytes=4096 + 128 + 65536)) == []
    assert over(log, Limits(temp_bytes=1024)) == [
        (
            "JX591",
            "train_step#1 uses 64.0 KiB of temporaries per device, 1.0 KiB allowed "
            "(temporaries 64.0 KiB, arguments 4.0 KiB, results 128 B, the largest x 16 B)",
        )
    ]
    assert "68.1 KiB at its peak" in over(log, Limits(peak_bytes=1024))[0][1]


def test_a_figure_that_is_not_known_is_reported_and_is_a_note(log):
    call = log.missed(STEP, x(4))
    log.phase(call, "compile", 1.0)
    found = budgets.findings(
        load(log.run),
        Limits(temp_bytes=1, peak_bytes=1, constant_bytes=1, collectives={"*": 1}, collective_bytes={"*": 1}),
    )
    assert [f.code for f in found] == ["JX901"] * 4 and {f.severity for f in found} == {NOTE}
    assert "train_step#1: its memory (temporaries) is unknown" in words.title(found[0])
    assert any("its text was not kept (record with --ir all to keep it)" in words.title(f) for f in found)


def test_a_limit_for_a_function_that_nobody_compiled_fails(log):
    log.compiled(STEP, x(4))
    (found,) = budgets.findings(load(log.run), Limits(), {"trian_step": Limits(compilations=0)})
    assert (found.code, found.severity) == ("JX901", ERROR) and "'trian_step'" in words.title(found)
    assert words.fix_text(found) == "did you mean train_step?"


def test_a_limit_on_an_axis_that_no_mesh_has_fails(log):
    mesh = Sharding("NamedSharding", "P('data')", "0-3", (("data", 4, "Auto"),), "P('data',)", "device")
    log.compiled(STEP, key(leaf("x", 8), shardings=[mesh]), program="aa", texts={"hlo": HLO})
    (found,) = budgets.findings(load(log.run), Limits(collectives={"all-reduce@dta": 0}))
    assert (found.code, found.severity) == ("JX901", ERROR) and "'dta'" in words.title(found)
    assert words.fix_text(found) == "did you mean data?"


def test_what_several_threads_compile_at_one_time_is_counted_once(log):
    calls = [log.missed(STEP, x(n)) for n in (1, 2)]
    log.now += 2.0
    for call in calls:  # both end now, after two seconds each
        log.say(ev.Compiled(call=call, seconds=2.0))
    ids = dict.fromkeys(load(log.run).compilations, 1)
    assert over(log, Limits(seconds=2.5), part_of_run=ids) == []
    assert over(log, functions={"train_step": Limits(seconds=2.5)}) == []
    assert len(over(log, Limits(seconds=1.5), part_of_run=ids)) == 1


def test_a_function_has_its_own_limit_in_place_of_the_general_one(log):
    log.compiled(STEP, x(4), program="aa")
    log.compiled(EVAL, x(4), program="bb")
    found = over(log, Limits(temp_bytes=0), {"train_step": Limits(temp_bytes=1 << 20)})
    assert [title.partition(" ")[0] for _, title in found] == ["eval_step#1"]


def test_collectives_are_counted_by_kind_and_axis_and_the_line_is_named(log):
    mesh = Sharding("NamedSharding", "P('data')", "0-3", (("data", 4, "Auto"),), "P('data',)", "device")
    other = Sharding("NamedSharding", "P('model')", "0-3", (("model", 4, "Auto"),), "P('model',)", "device")
    k = key(leaf("x", 8), shardings=[mesh])
    log.missed(EVAL, key(leaf("x", 8), shardings=[other]))
    log.compiled(STEP, k, program="aa", texts={"hlo": HLO})
    assert over(log, Limits(collectives={"*": 2, "all-gather": 1, "all-gather@data": 1, "*@model": 0})) == []
    (found,) = budgets.findings(load(log.run), Limits(collectives={"all-gather@data": 0}))
    assert found.code == "JX491" and found.source.line == 91
    assert words.title(found).startswith(
        "train_step#1 has 1 all-gather over data, 0 allowed; the largest: all-gather over data of 32 B"
    )
    assert "64 B of collectives per call, 63 B allowed" in over(log, Limits(collective_bytes={"*": 63}))[0][1]
    assert over(log, Limits(collective_bytes={"*": 64})) == []


def test_arguments_that_several_devices_hold_are_replicated(log):
    copied = Sharding("NamedSharding", "P()", "0-3", (("data", 4, "Auto"),), "P()", "device")
    split = Sharding("NamedSharding", "P('data')", "0-3", (("data", 4, "Auto"),), "P('data',)", "device")
    k = key(leaf("params", 1024), leaf("batch", 4096, sharding=1), shardings=[copied, split])
    log.compiled(STEP, k)
    assert over(log, Limits(replicated_bytes=4096)) == []
    assert over(log, Limits(replicated_bytes=4095)) == [
        (
            "JX591",
            "train_step#1 uses 4.0 KiB of replicated arguments per device, 4.0 KiB allowed: params 4.0 KiB on 4 devices",
        )
    ]


def test_what_numpy_has_is_replicated_where_the_program_takes_it_so(log):
    copied = Sharding("NamedSharding", "P()", "0-3", (("data", 4, "Auto"),), "P()", "device")
    given = key(leaf("x", 1024, type="numpy.ndarray", sharding=None), shardings=[])
    call = log.missed(STEP, given)
    log.say(ev.Lowered(call=call, asked=[copied], asked_in=[0]))
    log.say(ev.Compiled(call=call, in_shardings=[copied], in_sharding_of=[0]))
    ((code, title),) = over(log, Limits(replicated_bytes=0))
    assert code == "JX591" and "x 4.0 KiB on 4 devices" in title
    assert over(log, Limits(replicated_bytes=4096)) == []


def test_only_what_belongs_to_the_part_is_counted(log):
    for n in (1, 2, 3):
        log.compiled(STEP, x(n))
    ids = list(load(log.run).compilations)
    assert over(log, Limits(compilations=1), part_of_run={ids[2]: 1}) == []
    assert len(over(log, Limits(compilations=0, seconds=0), part_of_run={ids[2]: 1})) == 2


@pytest.mark.parametrize(
    ("name", "written", "read"),
    [
        ("max-compilations", "12", 12),
        ("max-compile-seconds", "0.5", 0.5),
        ("max-temp-bytes", "64 MiB", 64 << 20),
        ("max-temp-bytes", "1.5GB", 1_500_000_000),
        ("max-temp-bytes", "7 B", 7),
        ("max-peak-bytes", 0, 0),
        ("max-collectives", 3, {"*": 3}),
        ("max-collectives", {"all-gather": 2, "*@model": 0}, {"all-gather": 2, "*@model": 0}),
        ("max-collective-bytes", {"all-reduce@data": "1KiB"}, {"all-reduce@data": 1024}),
    ],
)
def test_limits_are_written_as_people_write_them(name, written, read):
    assert limits.read(name, written, "here") == read


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("max-compilations", -1, "a whole number, 0 or more"),
        ("max-compilations", True, "a whole number"),
        ("max-compilations", 1.5, "a whole number"),
        ("max-compile-seconds", "nan", "a number of seconds"),
        ("max-compile-seconds", float("inf"), "a number of seconds"),
        ("max-temp-bytes", "64 MB/s", "a size"),
        ("max-temp-bytes", "9" * 5000, "a size"),
        ("max-temp-bytes", [], "a size"),
        ("max-collectives", {"all-gater": 1}, "did you mean all-gather?"),
        ("max-collectives", {"all-gather@": 1}, "names no axis"),
        ("max-collectives", {"all-gather": "many"}, "a whole number"),
    ],
)
def test_what_is_no_limit_is_an_error_that_shows_one(name, written, said):
    with pytest.raises(UsageError) as e:
        limits.read(name, written, "here")
    assert said in e.value.message and e.value.hint.startswith(f"for example: {name} = ")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"train_*": {"max-compilation": 3}}, "no option 'max-compilation'"),
        ({"train_*": 3}, "must be a table of limits"),
        (3, "must be a table of tables"),
        ({"train_*": {"max-compilations": "x"}}, 'functions."train_*": max-compilations'),
    ],
)
def test_a_mistake_in_the_limits_of_a_function_is_named(table, said):
    with pytest.raises(UsageError) as e:
        limits.functions(table, "pyproject.toml: [tool.jaxscope.check]")
    assert said in e.value.message
