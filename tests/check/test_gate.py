"""No recompiles after step N, on logs written by hand."""

import handwritten_runs
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.check import gate
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.model.steps import Steps
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.findings import ERROR, NOTE

STEP = function("train_step")
EVAL = function("eval_step", line=120)
ADD = function("add", None, None, eager=True, form="primitive")
CUMSUM = function(
    "cumsum", "/lib/jax/_src/numpy/reductions.py", 7, library=True, module="jax._src.numpy.reductions"
)
UPDATE = function(
    "update", "/lib/site-packages/optax/_src/base.py", 7, library=True, module="optax._src.base"
)


def x(n: int):
    return key(leaf("x", n))


@pytest.fixture
def log(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    for f in (STEP, EVAL, ADD, CUMSUM, UPDATE):
        log.say(f)
    return log


def titles(log, n, **options):
    return [words.title(f) for f in gate.recompiles_after(load(log.run), n, **options)]


def watched(log):
    log.say(ev.Watched(function=STEP.function, step=True))


def test_a_recompile_after_the_step_is_reported_with_cause_path_line_and_seconds(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.compiled(STEP, x(3), (0.5, 0.1, 6.4), step=3)
    (found,) = gate.recompiles_after(load(log.run), 2)
    assert (
        words.title(found)
        == "train_step was traced and compiled in step 3, but nothing may compile after step 2: x changed from f32[4] to f32[3]"
    )
    assert found.severity == ERROR and found.code == "JX190" and found.seconds == pytest.approx(7.0)
    assert found.source.line == 140 and words.fix_text(found).startswith("drop the smaller batch")
    assert found.evidence[0].step == 3 and found.evidence[0].compilation


def test_a_step_that_is_still_allowed_may_compile(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.compiled(STEP, x(3), step=2)
    assert titles(log, 2) == []
    assert len(titles(log, 1)) == 1


def test_step_0_allows_nothing_and_needs_no_steps(log):
    log.compiled(STEP, x(4))
    assert titles(log, 0) == [
        "train_step was traced and compiled, where nothing may compile: the first time this function is seen"
    ]


def test_without_steps_it_is_an_error_that_names_the_most_compiled_function(log):
    log.compiled(EVAL, x(4))
    for n in (1, 2, 3):
        log.compiled(STEP, x(n))
    with pytest.raises(UsageError) as e:
        gate.recompiles_after(load(log.run), 1)
    assert e.value.slug == "steps-unknown"
    for way in ("jaxscope.step()", "@jaxscope.watch(step=True)", "--step-function train_step"):
        assert way in e.value.hint


def test_what_cannot_be_counted_from_outside_is_not_advised(log):
    through = function("advance", line=30, wrappers=["equinox.filter_jit"])
    log.say(through)
    for n in (1, 2):
        log.compiled(through, x(n))
    with pytest.raises(UsageError) as e:
        gate.recompiles_after(load(log.run), 1)
    assert "watch(step=True)" in e.value.hint and "--step-function" not in e.value.hint


@pytest.mark.parametrize("n", [-1, 1.5, True, "2", None])
def test_a_step_that_is_no_count_is_refused(log, n):
    with pytest.raises(UsageError, match="the step must be 0, 1, 2") as e:
        gate.recompiles_after(load(log.run), n)
    assert "0 allows no compilation;" in e.value.hint


def test_an_eager_operation_that_compiles_counts_and_is_called_eager(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.compiled(ADD, x(4), (0, 0, 5), step=2)
    log.compiled(CUMSUM, x(4), (0, 0, 4), step=2)
    assert [t.partition(" in ")[0] for t in titles(log, 1)] == [
        "the eager operation add was traced and compiled",
        "the eager operation cumsum was traced and compiled",
    ]


def test_an_eager_operation_that_was_only_traced_does_not_count(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.phase(log.missed(ADD, x(4), step=2), "trace", 0.1)
    assert titles(log, 1) == []


def test_a_trace_alone_of_a_function_of_the_users_counts(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.phase(log.missed(STEP, x(3), step=2, entry="aot"), "trace", 0.1)
    assert titles(log, 1)[0].startswith("train_step was traced in step 2")


def test_a_function_of_a_library_is_a_note(log):
    watched(log)
    log.compiled(UPDATE, x(4), step=5)
    (found,) = gate.recompiles_after(load(log.run), 1)
    assert (
        found.severity == NOTE
        and "update, a function of optax, was traced and compiled in step 5" in words.title(found)
    )
    log.compiled(UPDATE, x(3), step=1)
    assert len(gate.recompiles_after(load(log.run), 1)) == 1


def test_what_was_lowered_before_the_recording_and_is_compiled_now_counts(log):
    nameless = function("<unknown>", None, None, library=True, module=None)
    log.say(nameless)
    log.phase(log.missed(nameless, None, entry="aot"), "compile", 1.0)
    assert titles(log, 0)[0].startswith(
        "a function whose name is unknown was compiled, where nothing may compile"
    )


def test_what_a_library_compiles_inside_the_users_trace_is_part_of_it(log):
    watched(log)
    outer = log.missed(STEP, x(4), step=5)
    log.compiled(UPDATE, x(4), step=5, inside=outer)
    log.phase(outer, "trace", 0.2)
    assert [t.partition(" ")[0] for t in titles(log, 1)] == ["train_step"]


def test_what_a_library_calls_from_no_line_of_the_users_does_not_count(log):
    watched(log)
    log.compiled(UPDATE, x(4), step=5, site=None)
    assert titles(log, 1) == []


def test_a_function_of_the_users_counts_from_wherever_it_is_called(log):
    watched(log)
    log.compiled(EVAL, x(4), step=5, site=None)  # atexit.register(eval_step, batch): no line calls it
    assert titles(log, 1)[0].startswith("eval_step was traced and compiled in step 5")


def test_what_only_leaves_the_fast_path_never_counts(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.missed(STEP, key(leaf("x", 4, type="numpy.ndarray")), step=2)
    log.say(ev.MissesCounted(function=STEP.function, count=1000))
    assert titles(log, 1) == []
    assert titles(log, 0, part_of_run={}) == []


def test_what_failed_or_never_ended_is_not_a_compilation(log):
    watched(log)
    call = log.missed(STEP, x(4), step=3)
    log.say(ev.PhaseBegan(call=call, phase="trace"))
    log.say(ev.PhaseFailed(call=call, phase="trace", seconds=0.1))
    assert titles(log, 1) == []


def test_a_function_inside_the_trace_of_another_is_part_of_it(log):
    watched(log)
    outer = log.missed(STEP, x(4), step=2)
    log.phase(log.missed(EVAL, x(4), step=2, entry="nested", inside=outer), "trace", 0.1)
    log.phase(outer, "trace", 0.2)
    assert [t.partition(" was")[0] for t in titles(log, 1)] == ["train_step"]
    assert [t.partition(" was")[0] for t in titles(log, 1, functions=["eval_step"])] == ["eval_step"]


def test_hits_in_the_persistent_cache_count_unless_they_are_allowed(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.compiled(STEP, x(3), step=2, cache="hit")
    assert "(from the persistent cache)" in titles(log, 1)[0]
    assert titles(log, 1, allow_cache_hits=True) == []


def test_one_cause_many_times_is_one_finding(log):
    watched(log)
    for n in range(1, 40):
        log.compiled(STEP, x(n), step=n)
    (found,) = gate.recompiles_after(load(log.run), 2)
    assert (
        "traced and compiled 37 times in steps 3 to 39, but nothing may compile after step 2; most recently: x changed from f32[38] to f32[39]"
        in words.title(found)
    )
    assert len(found.evidence) == 5 and found.evidence[0].step == 3 and found.evidence[-1].step == 39


@pytest.mark.parametrize(
    ("pattern", "there"), [("train_step", True), ("train_*", True), ("train.py:88", True), ("eval*", False)]
)
def test_only_the_functions_requested_are_looked_at(log, pattern, there):
    watched(log)
    log.compiled(EVAL, x(4), step=1)
    log.compiled(STEP, x(4), step=1)
    log.compiled(STEP, x(3), step=2)
    assert bool(titles(log, 1, functions=[pattern])) is there


def test_a_name_that_means_no_function_fails_and_the_nearest_is_named(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    run = load(log.run)
    (found,) = gate.recompiles_after(run, 1, ["trian_step"])
    assert (found.code, found.severity) == ("JX901", ERROR) and "'trian_step'" in words.title(found)
    assert words.fix_text(found) == "did you mean train_step?"
    run.defined = lambda pattern: True  # a program that still runs has such a function, and it was warm
    assert gate.recompiles_after(run, 1, ["trian_step"]) == []


def test_a_process_that_counts_no_steps_fails_where_the_step_of_the_program_is_unknown(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    child = Log(log.run, pid=2000, how="child")
    child.say(EVAL)
    child.compiled(EVAL, x(4))
    (found,) = gate.recompiles_after(load(log.run), 1)
    assert (found.code, found.severity) == ("JX901", ERROR)
    assert "a compilation (eval_step) happened before or after step 1" in words.title(found)


def test_a_process_that_counts_no_steps_is_in_the_step_of_the_programs_first(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    child = Log(log.run, pid=2000, how="child")
    child.say(EVAL)
    child.compiled(EVAL, x(4), main_step=1)
    assert titles(log, 1) == []
    child.compiled(EVAL, x(3), main_step=2)
    assert titles(log, 1)[0].startswith(
        "eval_step was traced and compiled in step 2, but nothing may compile after step 1"
    )


def test_a_forked_process_counts_on_from_the_steps_of_its_parent(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    child = Log(log.run, pid=2000, how="fork", steps=4)
    child.say(STEP)
    child.say(ev.Called(function=STEP.function, count=1))
    child.compiled(STEP, x(3))
    assert titles(log, 4)[0].startswith(
        "train_step was traced and compiled in step 5, but nothing may compile after step 4"
    )


def test_of_several_step_functions_the_one_called_most_counts(log):
    watched(log)
    log.say(ev.Watched(function=EVAL.function, step=True))
    log.say(ev.Called(function=EVAL.function, count=1))
    for n in (1, 7):
        log.say(ev.Called(function=STEP.function, count=n))
        log.compiled(STEP, x(n))
    assert titles(log, 6)[0].startswith("train_step was traced and compiled in step 7")
    assert titles(log, 7) == []


def test_a_watched_function_that_is_called_once_counts_no_steps(log):
    for f in (EVAL, STEP):
        log.say(ev.Watched(function=f.function))
        log.say(ev.Called(function=f.function, count=1))
    log.compiled(STEP, x(1))
    log.say(ev.Called(function=STEP.function, count=7))
    log.compiled(STEP, x(7))
    assert titles(log, 6)[0].startswith("train_step was traced and compiled in step 7")


def test_watched_functions_that_disagree_are_an_error_outside_the_calls_of_the_first(log):
    for f in (EVAL, STEP):
        log.say(ev.Watched(function=f.function))
        log.say(ev.Called(function=f.function, count=1))
    log.say(ev.Called(function=STEP.function, count=7))
    log.compiled(STEP, x(7))
    log.say(ev.Called(function=EVAL.function, count=2))
    assert titles(log, 1)[0].endswith("several functions are watched, and none of them with step=True")
    assert titles(log, 7) == []
    log.compiled(EVAL, x(8))  # a call of the first: its own number counts
    assert len(titles(log, 2)) == 1


def test_a_mark_does_not_hide_that_a_step_function_had_been_called_often_before(log):
    watched(log)
    log.say(ev.Called(function=STEP.function, count=8))
    log.compiled(STEP, x(4))
    log.say(ev.Step(index=1))
    assert titles(log, 2)[0].endswith(
        "jaxscope.step() and the calls of the watched step function give different numbers of steps"
    )
    assert titles(log, 8) == [] and titles(log, 0)[0].startswith("train_step was traced and compiled, where")


def test_what_was_lowered_early_and_is_compiled_later_is_of_the_later_step(log):
    call = log.missed(STEP, x(4), entry="aot")
    log.phase(call, "trace", 0.1)
    for n in (1, 2, 3):
        log.say(ev.Step(index=n))
    log.say(ev.PhaseBegan(call=call, phase="lower", later=True))
    log.say(ev.Lowered(call=call, seconds=0.1))
    assert titles(log, 2)[0].startswith(
        "train_step was traced and lowered in step 4, but nothing may compile after step 2"
    )


def test_a_late_compilation_is_not_hidden_by_an_early_one_that_seems_to_stand_around_it(log):
    outer = log.missed(STEP, x(4), step=1)
    log.phase(outer, "trace", 0.1)
    log.say(ev.Step(index=1))
    log.compiled(EVAL, x(4), step=2, inside=outer)  # its frame has the address of one that is long gone
    assert [t.partition(" was")[0] for t in titles(log, 1)] == ["eval_step"]


def test_what_is_left_out_on_one_line_leaves_others_of_the_same_cause(log):
    watched(log)
    for f, line in ((STEP, 140), (EVAL, 141)):
        log.compiled(f, x(4), step=1, line=line)
        log.compiled(f, x(3), step=3, line=line)
    run = load(log.run)
    assert len(gate.late_after(run, 1)) == 1  # one change of size
    for line, left in ((140, "eval_step"), (141, "train_step")):
        (told,) = gate.late_after(run, 1, keep=lambda code, site, line=line: site.line != line)
        assert words.title(told.finding).startswith(f"{left} was") and "; so" not in words.title(told.finding)


def test_with_marks_the_first_step_lasts_until_the_first_mark(log):
    log.compiled(STEP, x(4))
    log.say(ev.Step(index=1))
    log.compiled(STEP, x(3), step=2)
    run = load(log.run)
    assert [Steps(run).of(c) for c in run.compilations.values()] == [1, 2]
    assert titles(log, 1)[0].startswith("train_step was traced and compiled in step 2")
    assert titles(log, 2) == []


def test_before_the_first_call_of_the_step_function_it_is_step_0(log):
    watched(log)
    log.compiled(EVAL, x(4))
    log.say(ev.Called(function=STEP.function, count=5))
    run = load(log.run)
    assert [Steps(run).of(c) for c in run.compilations.values()] == [0]
    assert titles(log, 1) == []


def test_a_part_has_steps_of_its_own(log):
    watched(log)
    log.compiled(STEP, x(4), step=1)
    log.compiled(STEP, x(3), step=100)
    log.compiled(STEP, x(2), step=101)
    run = load(log.run)
    ids = list(run.compilations)
    assert gate.recompiles_after(run, 1, part_of_run={ids[1]: 1}) == []
    (found,) = gate.recompiles_after(run, 1, part_of_run={ids[1]: 1, ids[2]: 2})
    assert "in step 2, but nothing may compile after step 1: x changed from f32[3] to f32[2]" in words.title(
        found
    )


def test_the_gate_is_no_finding_of_a_run_by_itself(tmp_path):
    run = load(handwritten_runs.training(tmp_path / "training"))
    assert not {f.code for f in registry.findings(run)} & {"JX190", "JX901"}
    assert {f.function.partition("@")[0] for f in gate.recompiles_after(run, 1)} == {
        "train_step",
        "main.<locals>.<lambda>",
    }
