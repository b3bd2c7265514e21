"""``jaxscope compile``: what may stand on its command line, and what is said of the rest."""

import json
import os
import subprocess
import sys

import handwritten_runs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.cli import compile as verb
from jaxscope.errors import UsageError

MODEL = """
import jax, jax.numpy as jnp

def step(w, x):
    return jnp.tanh(x @ w).sum()

def shapes():
    return jax.ShapeDtypeStruct((64, 64), jnp.bfloat16), jax.ShapeDtypeStruct((8, 64), jnp.bfloat16)

constant = 3
"""
FLAGS = (
    MODEL
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=8)
rows = parser.parse_args().rows
few = (jax.ShapeDtypeStruct((rows,), "float32"),)
"""
)


@pytest.mark.parametrize(
    ("word", "spec"),
    [
        ("f32[8,128]", ("f32", (8, 128), None)),
        ("bf16[4096,1024]@data,model", ("bf16", (4096, 1024), ["data", "model"])),
        ("i32[]", ("i32", (), None)),
        ("u8[16,4]@-,model", ("u8", (16, 4), [None, "model"])),
        ("shapes", "shapes"),
        ("package.module:shapes", "package.module:shapes"),
    ],
)
def test_an_argument_is_a_shape_or_a_name(word, spec):
    assert verb._spec(word) == spec


@pytest.mark.parametrize("word", ["f32(8)", "f33[8]", "f32[-1]", "f32[8]@a,b", "f32[8,]", "", "[8]", "a b"])
def test_anything_else_is_refused(word):
    with pytest.raises(UsageError):
        verb._spec(word)


@given(st.text(max_size=30) | st.from_regex(r"[a-z0-9]{1,4}\[[0-9,]{0,9}\](@[a-z,-]{0,6})?", fullmatch=True))
def test_no_word_is_too_odd(word):
    try:
        found = verb._spec(word)
    except UsageError as e:
        assert e.message
    else:
        assert isinstance(found, str) or (found[0] in verb.DTYPES and all(n >= 0 for n in found[1]))


def run(tmp_path, env, *words, code=2):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "flags.py").write_text(FLAGS)
    # A libtpu that is a name only: whatever gets so far is refused by it.
    env = {**env, "TPU_LIBRARY_PATH": str(tmp_path / "none.so"), "JAXSCOPE_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "compile", *words], env=env, cwd=tmp_path, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.capture
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model:stap", "--args", "shapes"], "did you mean step"),
        (["model:constant"], "has no function 'constant'"),
        (["nosuch:step"], "there is no module 'nosuch'"),
        (["nosuch.py:step"], "there is no file 'nosuch.py'"),
        (["step"], "write train.py:train_step"),
        (["model:step", "--args", "f32[64]@data"], "needs a mesh"),
        (
            ["model:step", "--mesh", "data=4", "--args", "f32[64]@data"],
            "the mesh has 4 devices, but there are 16",
        ),
        (["model:step", "--mesh", "data=16", "--args", "f32[64]@model"], "the mesh has no axis 'model'"),
        (["model:step", "--args", "f33[64]"], "'f33' is not a dtype"),
        (["model:step"], "model:step with 0 arguments: missing a required argument: 'w'"),
        (
            ["flags.py:step", "--args", "few"],
            "flags.py:step with 1 arguments: missing a required argument: 'x'",
        ),
    ],
)
def test_a_mistake_is_reported_with_what_to_write(tmp_path, clean_env, words, said):
    assert said in run(tmp_path, clean_env, *words, "--target", "v5e:4x4").stderr


@pytest.mark.capture
def test_a_target_that_is_none_is_refused_before_the_module_is_imported(tmp_path, clean_env):
    (tmp_path / "loud.py").write_text("raise SystemExit('imported')")
    assert "did you mean v5e:4x4" in run(tmp_path, clean_env, "loud:f", "--target", "v5litepod-16").stderr


@pytest.mark.long
@pytest.mark.capture
def test_what_does_not_compile_is_a_result_with_exit_code_1(tmp_path, clean_env):
    import importlib.util

    if importlib.util.find_spec("libtpu") is not None:
        pytest.skip("libtpu is installed here: it compiles")
    for function in ("model:step", "model.py:step"):
        done = run(tmp_path, clean_env, function, "--target", "v5e:4x4", "--args", "shapes", code=1)
        assert done.stdout.startswith("step  model.py:4") and "not compiled" in done.stdout
    report = subprocess.run(
        [sys.executable, "-m", "jaxscope", "report"], env={**clean_env, "JAXSCOPE_HOME": os.fspath(tmp_path / "home")},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "Compiled for v5e:4x4" in report.stdout and "step" in report.stdout


@pytest.mark.capture
def test_an_exception_of_the_function_is_the_users_to_see(tmp_path, clean_env):
    done = run(
        tmp_path, clean_env, "model:step", "--target", "v5e:4x4", "--args", "f32[3,4]", "f32[5,6]", code=1
    )
    assert "Traceback" in done.stderr and "model.py" in done.stderr


@pytest.mark.long
@pytest.mark.capture
def test_targets_of_different_sizes_are_compiled_one_after_the_other_and_stand_side_by_side(
    tmp_path, clean_env
):
    import importlib.util

    compiles = importlib.util.find_spec("libtpu") is not None
    words = [
        "model:step",
        "--target",
        "v5e:4x4",
        "--target",
        "v5e:2x2",
        "--args",
        "shapes",
        "--out",
        "recorded",
    ]
    done = run(tmp_path, clean_env, *words, code=0 if compiles else 1)
    assert "1 of 2: on 16 devices for v5e:4x4" in done.stderr
    assert "2 of 2: on 4 devices for v5e:2x2" in done.stderr
    table = done.stdout[done.stdout.index("Side by side") :]
    assert table.splitlines()[1].split() == ["v5e:4x4", "v5e:2x2"]
    report = [sys.executable, "-m", "jaxscope", "report", str(tmp_path / "recorded"), "--format", "json"]
    data = json.loads(subprocess.run(report, env=clean_env, capture_output=True, text=True).stdout)
    ((one, two),) = [c["columns"] for c in data["comparisons"]]
    assert (one["target"], one["sub_run"], two["target"], two["sub_run"]) == ("v5e:4x4", None, "v5e:2x2", 0)
    assert (one["state"] == "ok") is compiles


@pytest.mark.capture
def test_a_mistake_is_reported_once_where_there_are_several_sizes(tmp_path, clean_env):
    words = ["model:stap", "--target", "v5e:4x4", "--target", "v5e:2x2", "--args", "shapes"]
    done = run(tmp_path, clean_env, *words)
    assert done.stderr.count("did you mean step") == 1 and "2 of 2" not in done.stderr


@pytest.mark.parametrize(("words", "said"), [([], "a function is missing"), (["m:f"], "--target is missing")])
def test_what_is_missing_is_named(tmp_path, clean_env, words, said):
    assert said in run(tmp_path, clean_env, *words).stderr


def test_a_run_that_waits_for_nothing_has_no_rest(tmp_path, clean_env):
    handwritten_runs.training(tmp_path / "home" / "runs" / "train-1")
    assert "nothing is left to compile" in run(tmp_path, clean_env, "--rest", code=0).stderr
    assert "no run called 'nope'" in run(tmp_path, clean_env, "--rest", "nope").stderr
