"""Programs of the usual kinds, recorded as a user would: they have the findings that they are labelled with, and no other.

All of them, with their mended twins, are run by benchmarks/findings.py.
"""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import findings

from jaxscope.present.messages import TEMPLATES

pytestmark = [pytest.mark.capture, pytest.mark.subprocess, pytest.mark.costly]


@pytest.mark.parametrize("name", ["device_put_tree_once", "reshard_tree_once", "new_solver_each_round"])
@pytest.mark.long
def test_a_program_has_the_findings_of_its_labels_and_no_other(tmp_path, name):
    program = findings.PROGRAMS / f"{name}.py"
    findings.record(program, tmp_path / "run")
    verdict = findings.judge(program, tmp_path / "run")
    assert verdict.wrong == []


@pytest.mark.long
def test_the_advice_of_a_finding_is_applied_by_the_mended_program_which_has_none(tmp_path):
    case, mended = (findings.PROGRAMS / f"static_step_number{end}.py" for end in ("", "_mended"))
    for program in (case, mended):
        findings.record(program, tmp_path / program.stem)
    assert findings.judge(mended, tmp_path / mended.stem).wrong == []
    assert findings.judge_mending(mended, tmp_path) == []
    known, _ = findings.labels(case.read_text("utf-8"))
    [had] = [findings.findings_of(tmp_path / case.stem)]
    assert [*findings.of_the_mending(had, known, had, "# applies: fix-scan\n")] == [
        "advice that the mended program does not apply: fix-ordinary-argument fix-static-size",
        "the mended program has a finding of its own: JX107",
    ]


def test_each_mended_program_names_advice_that_there_is():
    unknown = {}
    for mended in sorted(findings.PROGRAMS.glob("*_mended.py")):
        case = mended.with_name(mended.name.replace("_mended.py", ".py"))
        wanted = any(label.must for label in findings.labels(case.read_text("utf-8"))[0])
        advice = findings.applied(mended.read_text("utf-8"))
        if (wanted and not advice) or advice - TEMPLATES.keys():
            unknown[mended.name] = advice
    assert unknown == {}


@pytest.mark.parametrize("jax", ["0.10", "0.12"])
def test_the_committed_figures_are_of_all_programs_and_none_is_wrong(jax):
    """After a change of a program or a rule: benchmarks/findings.py -o benchmarks/findings.jax-0.10.json"""
    path = Path(findings.__file__).with_name(f"findings.jax-{jax}.json")
    figures = json.loads(path.read_text("utf-8"))
    assert figures["programs"] + len(figures["skipped"]) == len(list(findings.PROGRAMS.glob("*.py")))
    assert (figures["wrong"], figures["recall"], figures["precision"]) == ({}, 1.0, 1.0)


def test_labels_are_read_from_the_comments_of_a_program():
    known, never = findings.labels(
        "# may: JX506, JX502 note\n# never: JX110\nf(x)  # must: JX101|JX102 first ~ pad, JX133\n"
    )
    assert [(label.line, sorted(label.codes), label.must) for label in known] == [
        (0, ["JX506"], False),
        (0, ["JX502"], False),
        (3, ["JX101", "JX102"], True),
        (3, ["JX133"], True),
    ]
    assert (known[1].note, known[2].first, known[2].pattern, never) == (True, True, "pad", ["JX110"])
