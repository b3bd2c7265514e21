"""Which findings a check looks at: codes, files, comments; and the comments that are of no use."""

import pytest

from jaxscope.check.selection import Filter, selection
from jaxscope.errors import UsageError
from jaxscope.model.run import Run
from jaxscope.present import findings as words
from jaxscope.schema import events as ev
from jaxscope.schema.findings import CERTAIN, WARNING, Finding
from jaxscope.schema.keys import Frame

FILE = "/home/ann/work/data/load.py"


def finding(code, line=3, file=FILE):
    return Finding(code, WARNING, CERTAIN, f"{code} found", source=Frame(file, line, "f"))


def codes(found):
    return [f.code for f in found]


def filtered(source, found, *, select=(), ignore=(), per_file=None, asked=lambda _: True):
    """(codes let through, titles of unused comments) for a run whose one file reads ``source``."""
    f = Filter(
        selection(select, ignore, per_file), lambda p: p.removeprefix("/home/ann/work/"), lambda _: source
    )
    kept = f.keep(found)
    run = Run()
    run.apply(ev.FunctionSeen(function="f", name="f", qualname="f", file=FILE, line=1, pid=1))
    return codes(kept), [words.title(u) for u in f.unused(run, asked)]


@pytest.mark.parametrize(
    ("select", "ignore", "kept"),
    [
        ((), (), ["JX101", "JX107", "JX302"]),
        (("JX1",), (), ["JX101", "JX107"]),
        (("JX1",), ("JX107",), ["JX101"]),
        (("JX107",), ("JX1",), ["JX107"]),  # the longer one wins
        (("JX1",), ("JX1",), []),
        ((), ("JX1", "JX3"), []),
        (("changing-shape",), (), ["JX101"]),
        (("jx302",), (), ["JX302"]),
        (("ALL",), ("JX302",), ["JX101", "JX107"]),
    ],
)
def test_codes_and_beginnings_of_codes_choose(select, ignore, kept):
    found = [finding(c) for c in ("JX101", "JX107", "JX302")]
    assert filtered("", found, select=select, ignore=ignore)[0] == kept


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("JX1010", "JX101"),
        ("JY101", "JX101"),
        ("changing-shapes", "changing-shape"),
        ("", "rule"),
        ("JX999", "of JX9 there are JX901, JX902; jaxscope rule lists all"),
        ("JX518", "of JX51 there are JX510, JX511, JX512"),
        ("JX011", "there are JX1xx, JX2xx,"),
    ],
)
def test_a_code_that_does_not_exist_is_an_error_with_the_nearest(text, near):
    for where in ({"select": [text]}, {"ignore": [text]}, {"per_file": {"*.py": [text]}}):
        with pytest.raises(UsageError) as caught:
            selection(**where)
        assert near in caught.value.hint


@pytest.mark.parametrize("pattern", ["data/*.py", "load.py", "*", FILE])
def test_a_pattern_leaves_codes_out_in_its_files(pattern):
    found = [finding("JX101"), finding("JX302"), finding("JX101", file="/home/ann/work/train.py")]
    kept, _ = filtered("", found, per_file={pattern: ["JX1"]})
    assert kept == (["JX302"] if pattern == "*" else ["JX302", "JX101"])


def test_a_comment_leaves_out_what_it_names_on_its_line():
    source = "a\nb\nx = step(x)  # jaxscope: ignore[JX101]\ny = step(y)\n"
    found = [finding("JX101"), finding("JX302"), finding("JX101", line=4)]
    assert filtered(source, found) == (["JX302", "JX101"], [])


def test_a_bare_comment_leaves_out_everything_on_its_line():
    assert filtered("a\nb\nf(x)  # jaxscope: ignore\n", [finding("JX101"), finding("JX302")]) == ([], [])


def test_a_comment_that_left_nothing_out_is_reported_with_the_codes_that_did_not():
    source = "a\nb\nf(x)  # jaxscope: ignore[JX101, JX302]\ng(x)  # jaxscope: ignore\n"
    kept, unused = filtered(source, [finding("JX101")])
    assert kept == []
    assert unused == [
        "the comment '# jaxscope: ignore[JX302]' excludes no finding",
        "the comment '# jaxscope: ignore' excludes no finding",
    ]


def test_a_comment_with_no_such_code_is_reported_with_the_nearest():
    _, unused = filtered("f(x)  # jaxscope: ignore[JX1011]\n", [])
    assert unused == [
        "the comment '# jaxscope: ignore' has the code JX1011, which is not a rule: did you mean JX101?"
    ]


def test_a_comment_that_names_nothing_is_reported():
    _, unused = filtered("f(x)  # jaxscope: ignore[]\n", [])
    assert unused == ["the comment '# jaxscope: ignore' has no valid code: write # jaxscope: ignore[JX101]"]


def test_comments_on_what_was_not_looked_at_are_not_judged():
    source = "f(x)  # jaxscope: ignore[JX101]\ng(x)  # jaxscope: ignore\n"
    assert filtered(source, [], select=["JX3"])[1] == []
    only_gate = "f(x)  # jaxscope: ignore[JX704]\n"
    assert filtered(only_gate, [], asked=lambda code: not code.startswith("JX7"))[1] == []
    assert len(filtered(only_gate, [])[1]) == 1


def test_unused_comments_can_be_left_out_like_everything_else():
    assert filtered("f(x)  # jaxscope: ignore[JX101]\n", [], ignore=["JX902"])[1] == []


def test_a_file_that_cannot_be_read_has_no_comments():
    f = Filter(selection(), text=lambda _: None)
    assert codes(f.keep([finding("JX101")])) == ["JX101"]


def test_a_finding_without_a_line_is_let_through():
    f = Filter(selection(per_file={"*": ["JX1"]}), text=lambda _: "")
    assert len(f.keep([Finding("JX101", WARNING, CERTAIN, "somewhere")])) == 1
