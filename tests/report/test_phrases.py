"""The wording of durations, counts, places and differences."""

import pytest

from jaxscope.model.run import Run
from jaxscope.report import phrases
from jaxscope.schema.causes import Cause, StaticValue
from jaxscope.schema.events import FunctionSeen, RunStarted
from jaxscope.schema.findings import CERTAIN, LIKELY
from jaxscope.schema.keys import Frame


def test_a_cause_is_one_clause_and_says_when_it_is_not_sure():
    values = StaticValue("\n", "str"), StaticValue("[red]", "str")
    sure = Cause("static_value", "trace", "x\x1b[2J", *values, CERTAIN)
    assert phrases.cause(sure) == r"the static value x\x1b[2J changed from \n to [red]"
    guess = Cause("evicted", "trace", None, None, None, LIKELY)
    assert phrases.cause(guess).startswith("it seems that no part of the key changed")


def test_files_are_named_from_where_the_program_ran():
    run = Run()
    run.apply(RunStarted(how="run", cwd="/home/ann/work"))
    places = phrases.Places(run, whole=True)
    assert places.frame(Frame("/home/ann/work/src/train.py", 8, "f")) == "src/train.py:8"
    assert places.file("/opt/v/site-packages/flax/nnx/x.py") == "flax/nnx/x.py"
    assert places.file("/home/bob/x.py") == "/home/bob/x.py"
    assert places.file("<stdin>") == "<stdin>"
    assert places.frame(None) is None


def test_a_file_goes_by_its_last_part_where_no_other_has_it():
    run = Run()
    run.apply(RunStarted(how="run", cwd="/w"))
    for n, file in enumerate(["/w/a/train.py", "/w/a/data.py", "/w/b/data.py"]):
        run.apply(FunctionSeen(function=str(n), file=file))
    places = phrases.Places(run)
    assert [places.file(f) for f in ("/w/a/train.py", "/w/b/data.py", "<stdin>")] == [
        "train.py",
        "b/data.py",
        "<stdin>",
    ]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/usr/bin/python3", "train.py", "-x"], "train.py -x"),
        (["python", "-X", "dev", "-u", "-m", "pkg.train"], "-m pkg.train"),
        (["python", "-c", "import jax\njax.jit"], "-c …"),
        (["train.py", "\x1b[31m"], r"train.py \x1b[31m"),
        ([], ""),
    ],
)
def test_the_command_is_the_users_without_the_interpreter(argv, said):
    assert phrases.command(argv) == said


def test_kinds_of_causes_are_words():
    assert [phrases.cause_count(k, 2) for k in ("shape", "static_value", "new_function")] == [
        "2 shape changes", "2 static value changes", "2 new function objects"
    ]  # fmt: skip
