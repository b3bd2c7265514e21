"""Findings for editors, CI and dashboards: each format as its readers parse it, whatever a program is called."""

import json
import os
import re
import subprocess
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jaxscope.report.formats import concise, data, full, github, gitlab, junit, markdown, sarif
from jaxscope.report.formats.placed import place
from jaxscope.rules import registry
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding
from jaxscope.schema.keys import Frame

BASE = "/home/ann/work"
SOURCE = "import jax\n\n\ndef main():\n    x = train_step(state, batch)  # slow\n"
HOSTILE = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("\n\r\t\x00\x1b\x07\x85\u2028\u202e\ud800\udcff%:,;<>&\"'[]{}\\|`^\ufffe"),
    ),
    max_size=30,
)
FRAMES = st.builds(Frame, file=HOSTILE, line=st.integers(-3, 10**9), function=HOSTILE)
FINDINGS = st.lists(
    st.builds(
        Finding,
        code=st.sampled_from(["JX101", "JX302", "JX704"]),
        severity=st.sampled_from([ERROR, WARNING, NOTE]),
        certainty=st.sampled_from([CERTAIN, LIKELY]),
        title=HOSTILE,
        function=st.none() | HOSTILE,
        source=st.none() | FRAMES,
        evidence=st.lists(st.builds(Evidence, text=HOSTILE, source=st.none() | FRAMES), max_size=2),
        fix=st.none() | HOSTILE,
        seconds=st.none() | st.floats(),
        path=st.none() | HOSTILE,
    ),
    max_size=3,
)


def one(**more):
    return Finding(
        **{
            "code": "JX101",
            "severity": WARNING,
            "certainty": CERTAIN,
            "title": "train_step was traced again: 50 % of x, y: z",
            "function": f"Trainer.train_step@{BASE}/pkg/train.py:12 | jax.grad",
            "source": Frame(f"{BASE}/pkg/train.py", 5, "main"),
            "evidence": [Evidence("#2 at step 3", source=Frame(f"{BASE}/pkg/train.py", 5, "main"))],
            "fix": "pad it",
            "seconds": 1.8,
            **more,
        }
    )


def placed(*found):
    return place(found or (one(),), [BASE])


def test_concise_is_one_line_as_editors_jump_to():
    text = concise.render(placed(one(), one(severity=NOTE, source=None), one(certainty=LIKELY)))
    assert text == (
        "pkg/train.py:5: JX101 train_step was traced again: 50 % of x, y: z\n"
        "JX101 note: train_step was traced again: 50 % of x, y: z\n"
        "pkg/train.py:5: JX101 it seems that train_step was traced again: 50 % of x, y: z\n"
    )


def test_full_shows_the_line_with_carets_under_what_it_speaks_of():
    assert full.render(placed(), lambda _: SOURCE) == (
        "JX101 train_step was traced again: 50 % of x, y: z [1.8 s]\n"
        " --> pkg/train.py:5\n"
        "  |\n"
        "5 |     x = train_step(state, batch)  # slow\n"
        "  |         ^^^^^^^^^^\n"
        "  = #2 at step 3\n"
        "  = help: pad it\n"
    )


@pytest.mark.parametrize(
    ("code", "path", "marked"),
    [
        ("loss = retrain_step(x) + train_step(y)", None, "train_step"),
        ("loss = self.run(state.params, batch)", "state.params['w']", "state"),
        ("loss = self.run(batch)  # slow", "state.params['w']", "loss = self.run(batch)"),
        ("loss = self.run(batch)", None, "loss = self.run(batch)"),
    ],
)
def test_full_marks_the_function_or_the_argument_of_the_finding(code, path, marked):
    source = "\n\n\n\n  " + code
    text = full.render(placed(one(path=path, title="the loss is slow")), lambda _: source)
    shown, mark = (line for line in text.split("\n") if "|" in line and line.strip() != "|")
    assert shown[mark.index("^") : mark.rindex("^") + 1] == marked


@pytest.mark.parametrize("source", [None, "", "a\n", "a\n\n\n\n\n"])
def test_full_leaves_out_a_line_that_is_not_there(source):
    text = full.render(placed(), lambda _: source)
    assert "--> pkg/train.py:5" in text and "|" not in text


def test_full_keeps_the_carets_below_their_code_where_there_are_tabs():
    lines = full.render(placed(), lambda _: "\n\n\n\n\tx = train_step(1)\n").split("\n")
    code, mark = lines[3], lines[4]
    assert code[mark.index("^") : mark.rindex("^") + 1] == "train_step"


def test_a_github_annotation_is_escaped_as_the_runner_reads_it():
    assert github.render(placed(), {"JX101": "changing-shape"}) == (
        "::warning file=pkg/train.py,line=5,title=JX101 changing-shape::"
        "train_step was traced again: 50 %25 of x, y: z%0A#2 at step 3%0Apad it\n"
    )
    odd = one(severity=NOTE, source=Frame(f"{BASE}/a,b:c%.py", 1, "f"))
    assert github.render(placed(odd)).startswith("::notice file=a%2Cb%3Ac%25.py,line=1,title=JX101::")
    assert github.render(placed(one(severity=ERROR, source=None))).startswith("::error title=JX101::")


def test_json_has_findings_as_the_report_has_them():
    found = json.loads(data.render(placed(one(), one(source=None)), run="train", failed=True))
    assert found["schema"] == 1 and found["failed"] is True and found["run"] == {"name": "train"}
    first, second = found["findings"]
    assert first["code"] == "JX101" and first["seconds"] == 1.8
    assert first["source"] == {"file": f"{BASE}/pkg/train.py", "line": 5, "function": "main"}
    assert first["place"] == {"file": "pkg/train.py", "line": 5}
    assert second["place"] is None and second["source"] is None


def test_junit_counts_failures_and_passes_notes():
    root = ET.fromstring(junit.render(placed(one(), one(severity=NOTE))))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed, passed = suite
    assert failed.get("file") == "pkg/train.py" and failed.get("line") == "5"
    assert failed[0].tag == "failure" and failed[0].get("type") == "JX101"
    assert [e.tag for e in passed] == ["system-out"]


def test_junit_without_findings_is_one_test_that_passed():
    (suite,) = ET.fromstring(junit.render([]))
    assert suite.get("tests") == "1" and [e.tag for e in suite] == ["testcase"] and not list(suite[0])


def document(found):
    return json.loads(sarif.render(found, registry.rules(), [BASE]))


def test_sarif_says_where_what_and_explains_the_rule():
    found = document(placed(one(), one(severity=ERROR, code="JX704"), one(severity=NOTE, source=None)))
    (run,) = found["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == ["JX101", "JX704"]
    assert rules[0]["name"] == "changing-shape" and "## Use instead" in rules[0]["help"]["markdown"]
    first, second, third = run["results"]
    assert [r["level"] for r in run["results"]] == ["warning", "error", "note"]
    assert second["ruleIndex"] == 1
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "pkg/train.py"},
        "region": {"startLine": 5},
    }
    assert third["locations"] == []
    assert first["relatedLocations"][0]["message"]["text"] == "#2 at step 3"


def test_a_sarif_result_keeps_its_fingerprint_when_lines_and_figures_change():
    def prints(**more):
        return document(placed(one(**more)))["runs"][0]["results"][0]["partialFingerprints"]

    moved = Frame(f"{BASE}/pkg/train.py", 99, "main")
    assert prints() == prints(source=moved, title="train_step was traced 9 times", seconds=3.0)
    assert prints() != prints(path="batch['x']")


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        (f"{BASE}/a b/ü#?.py", "a%20b/%C3%BC%23%3F.py"),
        ("/elsewhere/x.py", "file:///elsewhere/x.py"),
        (f"{BASE}/c:d.py", "c%3Ad.py"),
        (f"{BASE}/\udcff.py", "%FF.py"),
    ],
)
def test_a_file_name_becomes_a_uri(file, uri):
    (result,) = document(placed(one(source=Frame(file, 1, "f"))))["runs"][0]["results"]
    found = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert found == uri


# What SARIF 2.1.0 demands of what we write (section 3 of the specification), told in our own words.
LEVELS = {"none", "note", "warning", "error"}
URI = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")


def text_of(message):
    assert isinstance(message["text"], str) and message["text"].isascii() is not None


def check_location(location):
    physical = location["physicalLocation"]
    uri = physical["artifactLocation"]["uri"]
    assert URI.fullmatch(uri), uri
    urlsplit(uri)
    unquote(uri)
    assert set(physical) <= {"artifactLocation", "region"}
    if "region" in physical:
        assert physical["region"]["startLine"] >= 1
    if "message" in location:
        text_of(location["message"])
        assert location["id"] >= 0


def check_sarif(found):
    assert found["version"] == "2.1.0" and found["$schema"].endswith("sarif-2.1.0.json")
    (run,) = found["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] and isinstance(driver["version"], str)
    ids = [r["id"] for r in driver["rules"]]
    assert len(ids) == len(set(ids))
    for r in driver["rules"]:
        text_of(r["shortDescription"])
        text_of(r["help"])
        assert r["defaultConfiguration"]["level"] in LEVELS
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in LEVELS
        text_of(result["message"])
        assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            check_location(location)


def official(found):
    """Against the OASIS schema too, where JAXSCOPE_SARIF_SCHEMA names a copy of it and jsonschema is installed."""
    where = os.environ.get("JAXSCOPE_SARIF_SCHEMA")
    if where:
        jsonschema = pytest.importorskip("jsonschema")
        jsonschema.validate(found, json.loads(Path(where).read_text()))


@given(FINDINGS)
def test_sarif_is_as_the_specification_demands_whatever_a_program_is_called(found):
    result = document(place(found, [BASE]))
    check_sarif(result)
    official(result)


@given(FINDINGS)
def test_junit_is_well_formed_whatever_a_program_is_called(found):
    text = junit.render(place(found, [BASE]))
    assert text.isascii()
    (suite,) = ET.fromstring(text)
    assert len(suite) == max(1, len(found))


@given(FINDINGS)
def test_github_commands_stay_one_line_each_whatever_a_program_is_called(found):
    lines = github.render(place(found, [BASE])).split("\n")[:-1]
    assert len(lines) == len(found)
    for text in lines:
        assert text.isprintable()
        match = re.fullmatch(r"::(error|warning|notice) ((?:\w+=[^:,]*)(?:,\w+=[^:,]*)*)::(.*)", text)
        assert match, text


@given(FINDINGS)
def test_json_can_be_read_whatever_a_program_is_called(found):
    text = data.render(place(found, [BASE]), run="x", failed=False)
    assert text.isascii()
    assert len(json.loads(text)["findings"]) == len(found)


@given(FINDINGS, HOSTILE)
def test_texts_for_people_move_no_cursor_whatever_a_program_is_called(found, source):
    lines = concise.render(place(found, [BASE])).split("\n")[:-1]
    assert len(lines) == len(found)
    for text in [*lines, *full.render(place(found, [BASE]), lambda _: source).split("\n")]:
        assert text.isprintable()


def in_markdown(found):
    """Return (tokens of the blocks, their inline children) as a parser of GitHub's Markdown reads them."""
    text = markdown.render(place(found, [BASE]), run="train", failed=bool(found))
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    return text, blocks, [child for block in blocks for child in block.children or ()]


def test_markdown_has_a_row_a_finding_and_its_evidence_folded():
    text, blocks, inline = in_markdown(
        [one(), one(severity=NOTE, source=None, evidence=[], fix=None, seconds=None)]
    )
    assert text.splitlines()[:2] == [
        "<!-- jaxscope check -->",
        "### jaxscope check failed: 1 finding, 1 note",
    ]
    assert sum(b.type == "tr_open" for b in blocks) == 3
    assert "| ⚠️ JX101 | `train_step was traced again: 50 % of x, y: z` | 1.8 s | `pkg/train.py:5` |" in text
    assert text.count("<details>") == text.count("</details>") == 1
    assert "<summary>JX101 pkg/train.py:5</summary>" in text
    assert [c.content for c in inline if c.type == "code_inline"][-2:] == ["#2 at step 3", "pad it"]


def test_markdown_without_findings_says_that_the_check_passed():
    text, blocks, _ = in_markdown([])
    assert "### jaxscope check passed: no findings" in text
    assert not any(b.type == "table_open" for b in blocks)


def test_markdown_fits_into_a_comment_and_says_what_it_left_out():
    evidence = [Evidence("x" * 300 + str(n)) for n in range(8)]
    text, _, _ = in_markdown([one(evidence=evidence) for _ in range(70)])
    assert len(text) < 65_536
    assert re.search(r"^\d+ findings without details here: see `jaxscope check`\.$", text, re.M)


@given(FINDINGS)
def test_nothing_of_a_program_is_markup_in_markdown(found):
    _, blocks, inline = in_markdown(found)
    assert sum(b.type == "tr_open" for b in blocks) == (len(found) + 1 if found else 0)
    known = ("<!-- jaxscope check -->", "<details><summary>JX", "</details>")
    assert all(b.content.startswith(known) for b in blocks if b.type == "html_block")
    assert {c.type for c in inline} <= {"text", "code_inline", "softbreak"}


def test_gitlab_has_what_it_needs_of_each_finding():
    first, second, third = json.loads(gitlab.render(placed(one(), one(), one(severity=NOTE, source=None))))
    assert first["location"] == {"path": "pkg/train.py", "lines": {"begin": 5}}
    assert (first["check_name"], first["severity"], third["severity"]) == ("JX101", "major", "info")
    assert first["description"] == "train_step was traced again: 50 % of x, y: z (pad it)"
    assert len({e["fingerprint"] for e in (first, second, third)}) == 3
    assert third["location"] == {"path": ".", "lines": {"begin": 1}}


@pytest.mark.subprocess
def test_the_workflow_comments_once_and_then_updates_its_comment(tmp_path):
    workflow = (Path(__file__).parents[2] / "docs" / "pull-request.yml").read_text()
    script = textwrap.dedent(workflow.partition("name: Comment")[2].partition("run: |\n")[2])
    (tmp_path / "jaxscope.md").write_text(f"{markdown.MARKER}\n")
    calls = tmp_path / "calls"
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\necho "$@" >> "$CALLS"\ncase "$*" in *--jq*) printf "$IDS";; esac\n')
    gh.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CALLS": str(calls),
        "GITHUB_REPOSITORY": "a/b",
        "NUMBER": "7",
    }
    for ids, expected in (("", "api repos/a/b/issues/7/comments -F body=@jaxscope.md"), ("12\n13\n", "api -X PATCH repos/a/b/issues/comments/12 -F body=@jaxscope.md")):  # fmt: skip
        subprocess.run(["bash", "-e", "-c", script], check=True, cwd=tmp_path, env={**env, "IDS": ids})
        assert calls.read_text().splitlines()[-1] == expected
    assert markdown.MARKER in script
