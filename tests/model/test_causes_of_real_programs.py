"""Labelled programs, recorded in one process: is the true cause named, at its level and its path?

The programs and their labels are in tests/data/causes; benchmarks/causes.py scores the same ones and JAX's own
explainer beside them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

DATA = Path(__file__).parents[1] / "data"
NAMES = (DATA / "causes" / "names.txt").read_text().splitlines()
TIMEOUT = 560
pytestmark = pytest.mark.timeout(600)  # one recording of 300 programs, on a machine that may be busy

# Alone: the package around it imports JAX.
_spec = importlib.util.spec_from_file_location("judge_of_causes", DATA / "causes" / "judge.py")
_judge = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_judge)
judge, explained = _judge.judge, _judge.explained


@pytest.fixture(scope="module")
def said(made_once, clean_env):
    """What was said of every case, by name."""

    def make(folder):
        path = os.pathsep.join(filter(None, [str(DATA), clean_env.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, "-m", "causes", "causes.json"],
            env={**clean_env, "PYTHONPATH": path},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads((folder / "causes.json").read_text())

    return made_once("causes", make)


@pytest.mark.capture
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.costly
def test_the_true_cause_is_named_at_its_level_and_path(said, name):
    case = said[name]
    assert case["error"] is None
    assert (case["kind"], case["level"], case["path"]) == (True, True, True), (
        f"true: {case['true']}\nsaid: {case['said']}"
    )


@pytest.mark.capture
@pytest.mark.costly
def test_every_case_has_a_name_in_the_list(said):
    assert sorted(said) == sorted(NAMES)


@pytest.mark.capture
@pytest.mark.costly
def test_a_call_that_misses_is_reported_and_one_that_hits_is_not(said):
    wrong = [name for name, case in said.items() if bool(case["compilations"]) == case["control"]]
    assert not wrong


@pytest.mark.capture
@pytest.mark.costly
def test_blame_lands_in_the_program_and_not_in_a_library(said):
    assert not [name for name, case in said.items() if not case["line"]]


# What is right is decided in one place; these say what that is.


TRAIN = "/home/me/train.py"


def cause(kind, level="trace", path=None, before=None):
    return SimpleNamespace(kind=kind, level=level, path=path, before=before)


def labelled(*causes, persistent=None, says=()):
    return SimpleNamespace(causes=causes, persistent=persistent, says=says)


def compilation(*causes, inside=None, cache="off", file=TRAIN):
    said = [
        dict(zip(("kind", "level", "path"), c, strict=True), before="f32[4]", after="f32[8]") for c in causes
    ]
    return {"causes": said, "inside": inside, "persistent_cache": cache, "reached": ["traced"],
            "call_site": {"file": file, "line": 3, "function": "main"}}  # fmt: skip


def right(case, *compilations):
    return judge(case, list(compilations), TRAIN).right


def test_kind_level_and_path_have_to_be_right_at_once():
    case = labelled(cause("shape", path="x"))
    assert right(case, compilation(("shape", "trace", "x")))
    for wrong in (("dtype", "trace", "x"), ("shape", "lower", "x"), ("shape", "trace", "y")):
        assert not right(case, compilation(wrong))


def test_the_decisive_cause_has_to_stand_first():
    case = labelled(cause("shape", path="x"), cause("committed", "lower", "x"))
    first, second = ("shape", "trace", "x"), ("committed", "lower", "x")
    assert right(case, compilation(first, second))
    assert not right(case, compilation(second, first))
    assert not right(case, compilation(first))


def test_two_causes_of_one_level_may_stand_in_any_order():
    case = labelled(cause("shape", path="x"), cause("static_value", path="train"))
    a, b = ("shape", "trace", "x"), ("static_value", "trace", "train")
    assert right(case, compilation(a, b)) and right(case, compilation(b, a))
    assert not right(case, compilation(a))


def test_a_cause_beyond_the_label_is_counted():
    verdict = judge(
        labelled(cause("shape", path="x")),
        [compilation(("shape", "trace", "x"), ("dtype", "trace", "x"))],
        TRAIN,
    )
    assert verdict.right and verdict.extra == 1


def test_any_compilation_of_a_control_is_a_false_one():
    assert right(labelled())
    assert not right(labelled(), compilation())


def test_no_answer_is_not_right_and_unknown_is_distinguished():
    case = labelled(cause("shape", path="x"))
    assert not right(case)
    assert not right(case, compilation())
    verdict = judge(case, [compilation(("unknown", "trace", None))], TRAIN)
    assert verdict.unknown and not verdict.right


def test_a_line_in_a_library_is_not_the_users():
    case = labelled(cause("shape", path="x"))
    assert not judge(case, [compilation(("shape", "trace", "x"), file="/lib/equinox/_jit.py")], TRAIN).line


def test_the_call_itself_is_judged_and_not_what_was_compiled_inside_it():
    case = labelled(cause("shape", path="x"))
    inner, outer = compilation(("first", "trace", None), inside="1.1"), compilation(("shape", "trace", "x"))
    assert right(case, inner, outer)


def test_the_explainer_is_right_where_all_patterns_of_a_case_are_in_its_log():
    case = labelled(cause("shape"), says=(r"f32\[8\]", "train"))
    assert explained(case, "") is None
    assert explained(case, "at x, now F32[8] and\n before f32[4]; train") is True
    assert explained(case, "at x, now f32[8]") is False
