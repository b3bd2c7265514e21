"""``jaxscope diff`` from the command line."""

import json

import handwritten_runs
import pytest

PAGE = """\
- train_step#1  train.py:140, step 1, 8.8 s
+ train_step#2  train.py:140, step 2, 8.6 s
  trace 1.5 s, lower 0.30 s, compile 7.0 s → 6.8 s

What differs in the cache key
  state.count is no longer weakly typed; it changed from i32[] weak to i32[]

Program: changed  aa11 → bb22
"""


@pytest.fixture(autouse=True)
def runs(home):
    handwritten_runs.training(home / "train-1")
    handwritten_runs.training(home / "train-2")
    return home


@pytest.mark.parametrize(
    "words",
    [
        ("latest:train_step#1", "latest:train_step#2"),
        ("train-2:train_step#1", "#2"),
        (":train_step#1", ":train_step#2"),
        ("train-1:train.py:88#1", "train-1:train.py:88#2"),
        ("home/runs/train-1:train_step#1", "#2"),
    ],
)
def test_two_compilations_in_every_spelling(jaxscope, words):
    code, out, err = jaxscope("diff", *words)
    assert (code, err) == (0, "")
    assert out.startswith(PAGE)


def test_a_directory_may_have_a_colon_in_its_name(jaxscope, home, tmp_path):
    handwritten_runs.training(tmp_path / "a:b")
    assert jaxscope("diff", "a:b:train_step#1", "#2")[1].startswith(PAGE)
    assert "No difference" in jaxscope("diff", "a:b", "train-1")[1]


def test_equal_runs_do_not_differ_and_the_exit_code_says_so_where_it_is_requested(jaxscope):
    code, out, _ = jaxscope("diff", "train-1", "train-2", "--exit-code")
    assert code == 0
    assert "No difference in 5 functions." in out
    words = ("diff", "latest:train_step#1", "#2")
    assert jaxscope(*words)[0] == 0
    assert jaxscope(*words, "--exit-code")[0] == 1


def test_one_function_named_once_is_compared_with_itself_in_the_other_run(jaxscope):
    code, out, _ = jaxscope("diff", "train-1:train_step", "train-2")
    assert code == 0 and "No difference in 1 function." in out


def test_a_number_on_one_side_meets_the_latest_of_the_other(jaxscope):
    assert "train_step#4" in jaxscope("diff", "train-1:train_step#1", "train-2:train_step")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train_step#1", "train_step#2"), "jaxscope diff 'latest:train_step#1'"),
        (("train-1:train_stp#1", "#2"), "did you mean train_step"),
        (("train-1:train_step#1", "#9"), "it has #1 to #4"),
        (("train-7", "train-1"), "did you mean train-"),
    ],
)
def test_what_is_not_there_is_an_error_with_what_to_type(jaxscope, words, said):
    code, out, err = jaxscope("diff", *words)
    assert (code, out) == (2, "")
    assert said in err


def test_json_says_the_same(jaxscope):
    told = json.loads(jaxscope("diff", "latest:train_step#1", "#2", "--format", "json")[1])
    assert told["differs"] is True
    assert (told["run"], told["functions"]) == (None, None)
    c = told["compilation"]
    assert [(x["kind"], x["path"]) for x in c["causes"]] == [("weak_type", "state.count")]
    assert (c["before"]["ordinal"], c["after"]["ordinal"]) == (1, 2)
    assert c["before"]["seconds"]["compile"] == 7.0
    assert (c["program"]["before"], c["program"]["after"], c["program"]["same"]) == ("aa11", "bb22", False)
    assert c["program"]["fusions"] is None
    told = json.loads(jaxscope("diff", "train-1", "train-2", "--format", "json")[1])
    assert told["compilation"] is None and told["differs"] is False
    assert {f["name"] for f in told["functions"]} >= {"train_step", "eval_step"}


def test_it_can_be_written_to_a_file(jaxscope, tmp_path):
    assert jaxscope("diff", "latest:train_step#1", "#2", "-o", "out.txt") == (0, "", "")
    assert (tmp_path / "out.txt").read_text().startswith(PAGE)


def test_names_from_programs_cannot_write_to_the_terminal(jaxscope, home, tmp_path):
    from jaxscope.log import store

    for n in (1, 2):
        run = store.create(tmp_path / f"evil{n}")
        log = handwritten_runs.Log(run)
        seen = handwritten_runs.function("\x1b[31mred", line=1)
        log.say(seen)
        for m in range(n):
            log.compiled(
                seen, handwritten_runs.key(handwritten_runs.leaf("\x1b]0;x\x07", m + 1)), program=f"p\x1b{m}"
            )
        log.end()
    for words in (("evil1", "evil2"), ("evil2:train.py:1#1", "#2")):
        out = jaxscope("diff", *words)[1]
        assert "\x1b" not in out and "\x07" not in out and "red" in out
        assert "\x1b" not in jaxscope("diff", *words, "--format", "json")[1]


def test_the_report_says_where_programs_of_one_function_differ(jaxscope):
    assert "jaxscope diff latest:train_step#1 '#2'" in jaxscope("report")[1].replace(
        "'latest:train_step#1'", "latest:train_step#1"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("train-2", "latest"),
        ("latest", "latest"),
        ("train-2:train_step", "latest:train_step"),
        ("train-2:train_step#1", "#1"),
    ],
)
def test_a_run_beside_itself_is_an_error_that_names_the_other_runs(jaxscope, words):
    code, out, err = jaxscope("diff", *words)
    assert (code, out) == (2, "")
    assert "same" in err and "other runs: train-1" in " ".join(err.split())


def test_two_functions_of_one_run_can_be_compared(jaxscope):
    assert jaxscope("diff", "latest:train_step", "latest:eval_step")[0] == 0
