"""Bytes, seconds, counts, lists, file places and causes as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.model.run import Run
from jaxscope.present.causes import cause_count, explanation
from jaxscope.present.text import Places, command, count, listed, seconds, size
from jaxscope.schema.causes import Cause, StaticValue
from jaxscope.schema.events import FunctionSeen, RunStarted
from jaxscope.schema.findings import CERTAIN, LIKELY
from jaxscope.schema.keys import Frame


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "?"), (0, "0 s"), (0.0001, "<1 ms"), (0.041, "41 ms"), (0.4, "0.40 s"), (0.9949, "0.99 s"), (0.996, "1.0 s"),
        (9.96, "10.0 s"), (28.13, "28.1 s"), (100.2, "100 s"), (119.6, "2 min 0 s"), (134, "2 min 14 s"),
        (7300, "2 h 1 min"), (math.nan, "?"), (math.inf, "?"),
    ],
)  # fmt: skip
def test_durations_have_three_figures_at_most(value, said):
    assert seconds(value) == said


@given(st.floats())
def test_any_figure_has_a_wording(value):
    assert seconds(value)


def test_counts_and_sizes():
    assert size(None) == "?"
    assert count(1, "trace") == "1 trace"
    assert count(12_000, "leaf", "leaves") == "12,000 leaves"
    assert (count(1.0, "array"), count(1 / 3, "array")) == ("1 array", "0.333 arrays")
    assert size(812) == "812 B"
    assert size(3.4 * 2**20) == "3.4 MiB"
    assert size(2**50) == "1024.0 TiB"


def test_lists_end_in_and_and_long_ones_are_counted():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert listed(["a", "b", "c"], 2, "functions") == "a, b and 1 more function"
    assert listed([]) == ""


def test_a_cause_is_one_clause_and_says_when_it_is_not_sure():
    values = StaticValue("\n", "str"), StaticValue("[red]", "str")
    sure = Cause("static_value", "trace", "x\x1b[2J", *values, CERTAIN)
    assert explanation(sure) == r"the static argument 'x\x1b[2J' changed from \n to [red]"
    guess = Cause("evicted", "trace", None, None, None, LIKELY)
    assert explanation(guess).startswith("it seems that no part of the key changed")


def test_files_are_named_from_where_the_program_ran():
    run = Run()
    run.apply(RunStarted(how="run", cwd="/home/ann/work"))
    places = Places(run, whole=True)
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
    places = Places(run)
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
    assert command(argv) == said


def test_kinds_of_causes_are_words():
    assert [cause_count(k, 2) for k in ("shape", "static_value", "new_function")] == [
        "2 shape changes", "2 static value changes", "2 new function objects"
    ]  # fmt: skip
