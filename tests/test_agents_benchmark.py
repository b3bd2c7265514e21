"""The programs of benchmarks/agents/run.py, and how it compares an answer with their labels."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "agents"))

import findings as labelled
import run as agents


def test_there_are_twenty_programs_each_with_a_label_and_a_mended_one():
    assert len(set(agents.PROGRAMS)) == 20
    for name in agents.PROGRAMS:
        source = (labelled.PROGRAMS / f"{name}.py").read_text("utf-8")
        mended = (labelled.PROGRAMS / f"{name}_mended.py").read_text("utf-8")
        assert any(label.must for label in labelled.labels(source)[0]), name
        assert labelled.applied(mended) and "print(" in source and "print(" in mended, name


def test_an_answer_is_right_only_with_the_line_the_remedy_and_a_try_that_confirms_it():
    slow, mended = "x = f(1)\ny = f(2)  # must: JX101 first\n", "# applies: fix-preallocate\n"
    fix = agents.messages.TEMPLATES["fix-preallocate"]
    finding = {"code": "JX101", "source": {"line": 2}, "title": "f recompiled", "fix": fix}
    fact = {"name": "recompiles", "function": None, "verdict": "better"}
    tried = {
        "verdict": "better",
        "facts": [fact],
        "outputs": {"equal": True},
        "findings_gone": [{"code": "JX101"}],
    }

    def wrong(finding=finding, tried=tried):
        outcome = agents.Outcome("program")
        agents.judge(outcome, finding, tried, slow, mended)
        return len(outcome.wrong)

    assert wrong() == 0
    assert wrong({**finding, "source": {"line": 1}}) == 1
    assert wrong({**finding, "code": "JX102"}) == 2  # another finding, and that one is not gone
    assert wrong({**finding, "fix": "do something else"}) == 1
    assert wrong(tried={**tried, "outputs": {"equal": False}}) == 1
    assert wrong(tried={**tried, "facts": [{**fact, "verdict": "worse"}]}) == 1
    assert wrong(tried={**tried, "findings_gone": []}) == 1
