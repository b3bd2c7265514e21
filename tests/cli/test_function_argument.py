"""FUNCTION on the command line: which functions it is taken for is said where it is not the whole name of one."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.cli import command
from jaxscope.log import store


@pytest.fixture
def directory(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    seen = [
        function("train_step", line=88),
        function("train_eval", line=120),
        function("main.<locals>.loss", line=30),
        function("other.<locals>.loss", line=50),
    ]
    for f in seen:
        log.say(f)
        log.compiled(f, key(leaf("x", 1)))
    log.end()
    return str(run.path)


@pytest.mark.parametrize(
    "typed, said",
    [
        ("train_st", "'train_st' means train_step (train.py:88)\n"),
        ("train_st#1", "'train_st' means train_step (train.py:88)\n"),
        ("train.py:90", "'train.py:90' means train_step (train.py:88)\n"),
        ("TRAIN_EVAL", "'TRAIN_EVAL' means train_eval (train.py:120)\n"),
        ("loss", "'loss' means 2 functions: main.loss (train.py:30), other.loss (train.py:50)\n"),
        ("train_step", ""),
        ("train_step#1", ""),
        ("train.py:88", ""),
        ("main.loss", ""),
    ],
)
def test_what_is_not_the_whole_name_of_one_function_is_reported_with_what_it_means(
    directory, capsys, typed, said
):
    assert command(["report", directory, "--function", typed]) == 0
    out, err = capsys.readouterr()
    assert "trace" in out and err == said


@pytest.mark.parametrize(
    "words", [("dump", "{}", "train_ev", "-o", "{}/out"), ("diff", "{}:train_ev", "{}:train_step")]
)
def test_every_verb_that_takes_a_function_says_so(directory, capsys, words):
    command([word.format(directory) for word in words])
    assert "'train_ev' means train_eval (train.py:120)" in capsys.readouterr().err


def test_a_name_that_means_many_is_reported_with_a_few_and_their_number(tmp_path, capsys):
    run = store.create(tmp_path / "run")
    log = Log(run)
    for n in range(9):
        f = function(f"\x1b[31mstep_{n}", line=n + 1)
        log.say(f)
        log.compiled(f, key(leaf("x", 1)))
    log.end()
    assert command(["report", str(run.path), "--function", "step"]) == 0
    err = capsys.readouterr().err
    assert (
        err.startswith("'step' means 9 functions: ") and err.endswith(" and 3 more\n") and "\x1b" not in err
    )
