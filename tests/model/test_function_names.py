"""Finding the function a person means."""

import handwritten_runs
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.model.function_lookup import find_compilations, find_functions
from jaxscope.model.load import load


@pytest.fixture
def run(tmp_path):
    directory = store.create(tmp_path / "run")
    log = Log(directory)
    seen = [
        function("train_step", line=88),
        function("Trainer.step", line=20, module="app.train"),
        function("make.<locals>.<lambda>", line=30),
        function("loop.<locals>.<lambda>", line=40),
        function("add", None, None, eager=True),
        function("add", line=50),
    ]
    for f in seen:
        log.say(f)
        log.compiled(f, key(leaf("x", 1)))
        log.missed(f, key(leaf("x", 1)))
        log.compiled(f, key(leaf("x", 2)))
    return load(directory)


def names(run, text):
    return [f.name for f in find_functions(run, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("train_step", ["train_step"]),
        ("train.py:90", ["train_step"]),  # its first line is its decorator's
        ("train.py:55", ["add"]),
        ("step", ["Trainer.step"]),
        ("Trainer.step", ["Trainer.step"]),
        ("app.train.Trainer.step", ["Trainer.step"]),
        ("TRAIN_STEP", ["train_step"]),
        ("make.<lambda>", ["make.<locals>.<lambda>"]),
        ("train.py:88", ["train_step"]),
        (f"{handwritten_runs.CWD}/train.py:20", ["Trainer.step"]),
        ("work/train.py:30", ["make.<locals>.<lambda>"]),
        (" train_step ", ["train_step"]),
    ],
)
def test_a_function_is_found_by_what_people_call_it(run, text, found):
    assert names(run, text) == found


def test_several_of_one_name_are_all_meant(run):
    assert sorted(names(run, "<lambda>")) == ["loop.<locals>.<lambda>", "make.<locals>.<lambda>"]


def test_of_one_name_the_users_comes_before_the_eager_operation(run):
    [f] = find_functions(run, "add")
    assert f.user


def test_a_file_means_all_functions_in_it(run):
    assert len(names(run, "train.py")) == 5


@pytest.mark.parametrize(
    "text", ["trian_step", "", "#", ".", "/", ":", "train.py:999999999999", "\x1b[31m", "a" * 5000]
)
def test_an_unknown_name_says_what_is_near(run, text):
    with pytest.raises(UsageError, match="no function called") as e:
        find_functions(run, text)
    assert e.value.hint
    assert ("train_step" in e.value.hint) or text != "trian_step"


def test_numbers_count_what_was_compiled_and_not_what_only_missed_the_fast_path(run):
    functions, n = find_compilations(run, "train_step#2")
    assert n == 2
    [f] = functions
    assert [(m, c.call) for m, c in run.numbered(f)] == [(1, 1), (2, 3)]
    assert [run.number(c) for c in f.compilations] == [1, None, 2]


def test_a_number_there_is_not_says_which_there_are(run):
    with pytest.raises(UsageError, match="has no compilation #9") as e:
        find_compilations(run, "train_step#9")
    assert "#1 to #2" in e.value.hint
