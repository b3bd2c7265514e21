"""``jaxscope.no_recompiles`` around real programs. Each scenario is a function; all run in one process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "guarded.py"
pytestmark = [pytest.mark.capture, pytest.mark.costly]


@pytest.fixture(scope="module")
def said(made_once, clean_env):
    """What became of each scenario: the name of what it raised, the text, what it printed."""
    return made_once("guard", lambda folder: run(folder, clean_env))


def run(folder, env, *args):
    done = subprocess.run(
        [sys.executable, *args, str(PROGRAM)],
        cwd=folder,
        env={**env, "TMPDIR": str(folder), "XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_recompile_after_the_step_raises_before_the_next_call(said):
    found = said["late_shape"]
    assert found["raised"] == "RecompileError"
    assert found["text"].startswith(
        "JX190 step was traced and compiled in step 3, but nothing may compile after step 1: x changed from f32[3] to f32[4]"
    )
    assert "guarded.py:" in found["text"] and "to the larger size" in found["text"]
    assert found["notes"] == [3, "JX190", "error", True]  # the call that came next did not happen


def test_the_clean_loop_passes_and_leaves_nothing_behind(said):
    for name in ("clean", "allowed"):
        assert said[name]["raised"] is None and said[name]["left"] == []


def test_a_mark_raises_at_the_end_of_the_step(said):
    assert (
        said["marks"]["raised"] == "RecompileError"
        and "in step 2, but nothing may compile after step 1" in said["marks"]["text"]
    )
    assert said["marks"]["notes"] == [2]


def test_without_steps_the_end_of_the_block_says_how_they_are_given(said):
    found = said["no_steps"]
    assert found["raised"] == "UsageError" and "jaxscope.step()" in found["text"]


def test_after_0_nothing_may_be_compiled_and_no_steps_are_needed(said):
    assert said["after_0"]["raised"] == "RecompileError"
    assert (
        "earlier compilations of this function are unknown, because the recording began with this block"
        in said["after_0"]["text"]
    )
    assert said["after_0_warm"]["raised"] is None


def test_noise_of_the_fast_path_is_no_recompile(said):
    assert said["noise"]["raised"] is None


@pytest.mark.parametrize("name", ["committed", "device", "static", "lambda", "x64"])
def test_recompiles_that_counting_traces_misses_are_seen(said, name):
    words = {
        "committed": "lowered and compiled in step 3, but nothing may compile after step 2: x is now committed to",
        "device": "compiled in step 3, but nothing may compile after step 2: x",
        "static": "in step 3, but nothing may compile after step 2: the static argument 'n' changed from 1 to 2",
        "lambda": "the jitted function is a new object",
        "x64": "jax_enable_x64",
    }[name]
    assert said[name]["raised"] == "RecompileError" and words in said[name]["text"]


def test_an_eager_operation_counts_and_is_called_eager(said):
    assert "the eager operation" in said["eager"]["text"] and said["eager"]["raised"] == "RecompileError"


def test_only_the_functions_named_are_looked_at(said):
    assert said["other_function"]["raised"] is None
    assert said["named_by_object"]["raised"] == "RecompileError"


def test_a_name_that_means_no_function_raises_and_one_that_was_not_called_does_not(said):
    assert said["misspelled"]["raised"] == "RecompileError"
    assert "no function called 'tarin_*' was compiled" in said["misspelled"]["text"]
    assert said["spelled_and_warm"]["raised"] is None


def test_what_another_task_compiles_is_not_part_of_a_block(said):
    assert said["another_task"]["raised"] is None and said["another_task"]["notes"] == ["went on"]


def test_the_blocks_own_exception_is_never_masked(said):
    assert said["own_exception"]["raised"] == "KeyError" and said["own_exception"]["left"] == []


def test_an_error_that_was_swallowed_comes_again_at_the_end(said):
    assert said["swallowed"]["raised"] == "RecompileError" and said["swallowed"]["notes"] == ["once"]


def test_as_a_decorator_the_block_is_one_call(said):
    assert said["decorator"]["raised"] == "RecompileError" and said["decorator"]["notes"] == ["fine", "fine"]
    assert said["bare_decorator"]["notes"] == ["__name__ and doc are kept", 6.0]
    assert said["method"]["raised"] == "RecompileError"


def test_async_functions_are_blamed_for_what_they_compile_alone(said):
    assert said["async_function"]["notes"] == ["float", "RecompileError", "float"]


def test_generators_are_not_blamed_for_what_their_consumer_compiles(said):
    assert said["generator"]["raised"] is None and said["generator"]["notes"] == [[2.0, 2.0, "sent", "done"]]
    assert said["generator_compiles"]["raised"] == "RecompileError"
    assert said["async_generator"]["notes"] == ["RecompileError"]


def test_blocks_stand_in_one_another_and_in_a_recording(said):
    assert said["nested"]["notes"] == ["inner raised"] and said["nested"]["raised"] is None
    assert said["in_a_recording"]["raised"] == "RecompileError"
    assert "x changed from f32[21] to f32[22]" in said["in_a_recording"]["text"]
    assert said["in_a_recording"]["notes"] == ["still recording", 2]


def test_a_recording_begun_in_a_block_warns_to_begin_it_before(said):
    assert said["recording_inside"]["raised"] is None
    assert "begin jaxscope.record() before the block" in said["recording_inside"]["notes"][0]


def test_steps_of_a_block_count_from_its_beginning(said):
    assert said["second_block"]["raised"] == "RecompileError"
    assert "in step 2, but nothing may compile after step 1" in said["second_block"]["text"]


def test_a_program_that_makes_marks_is_not_judged_by_calls(said):
    assert said["marks_as_before"]["notes"] == ["passed", 64, 65]
    assert "to f32[65]" in said["marks_as_before"]["text"]


def test_where_the_recording_ended_inside_the_block_nothing_is_claimed(said):
    assert said["recording_ended"]["raised"] == "JaxscopeError"
    assert "the recording ended before this block or test" in said["recording_ended"]["text"]


def test_nothing_is_raised_inside_a_callback_or_a_trace_of_jax(said):
    assert said["in_a_callback"]["raised"] == "RecompileError"
    assert said["in_a_callback"]["notes"] == ["the callback ran to its end"]


def test_threads_belong_to_the_block(said):
    assert said["thread"]["raised"] == "RecompileError" and said["thread"]["notes"] == ["thread ended well"]


def test_a_block_that_is_closed_in_another_thread_is_judged_there(said):
    passed, late = said["closed_in_another_thread"]["notes"]
    assert passed == "passed" and late.startswith(
        "RecompileError: JX190 step was traced and compiled in step 2"
    )


def test_a_warm_call_inside_a_block_runs_no_callback_of_ours(said):
    assert said["warm_calls"]["notes"] == [0]


def test_a_forked_child_that_leaves_through_the_block_takes_nothing_away(said):
    assert said["forked"]["raised"] == "RecompileError" and said["forked"]["notes"] == [0]


@pytest.mark.parametrize("name", ["negative", "text", "not_a_function", "a_class"])
def test_wrong_usage_is_named(said, name):
    assert said[name]["raised"] == "UsageError" and "\n  " in said[name]["text"]


@pytest.mark.long
def test_under_jaxscope_run_the_same_holds(tmp_path, clean_env, said):
    again = run(tmp_path, clean_env, "-m", "jaxscope", "run", "-q", "-o", "recorded")
    other = {n for n in said if said[n]["raised"] != again[n]["raised"]} - {
        "recording_ended"
    }  # part of the outer one
    assert not other
    # What was compiled before the block is known there.
    assert "x changed from f32[" in again["after_0"]["text"]


def test_the_error_can_be_pickled():
    import pickle

    from jaxscope import RecompileError

    error = pickle.loads(pickle.dumps(RecompileError("what", ["finding"], hint="do")))
    assert (str(error), error.findings, error.slug) == ("what\n  do", ["finding"], "recompile")
