"""Programs of the usual kinds, recorded as a user would: they have the findings that they are labelled with, and no other.

All of them, with their mended twins, are run by benchmarks/findings.py.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import findings

pytestmark = [pytest.mark.capture, pytest.mark.subprocess, pytest.mark.costly]


@pytest.mark.parametrize("name", ["device_put_tree_once", "reshard_tree_once", "new_solver_each_round"])
def test_a_program_has_the_findings_of_its_labels_and_no_other(tmp_path, name):
    program = findings.PROGRAMS / f"{name}.py"
    findings.record(program, tmp_path / "run")
    verdict = findings.judge(program, tmp_path / "run")
    assert verdict.wrong == []


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
