"""What is found under several settings is told once, with the settings it is of."""

import itertools

import pytest

from jaxscope.report import told
from jaxscope.report.variants import Variant
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Evidence, Finding


class Ran:
    """Of a run what telling looks at."""

    programs = retargeted = {}

    def __init__(self, *compilations):
        self.compilations = dict.fromkeys(compilations)


def varied(**axes):
    """One run a combination of ``axes``, with a compilation named by its position."""
    names = [f"--{name}" for name in axes]
    return [
        Variant(Ran(f"c{n}"), None, dict(zip(names, values, strict=True)))
        for n, values in enumerate(itertools.product(*axes.values()))
    ]


def finding(title="step was compiled once more", severity=WARNING, **more):
    return Finding("JX101", severity, CERTAIN, title, "step", **more)


def under(variants, by_position):
    """What is told where the n-th setting has the findings ``by_position[n]``."""
    at = {id(v): n for n, v in enumerate(variants)}
    return told.of_each(variants, lambda runs: by_position.get(at[id(runs[0])], []))


def test_what_every_setting_has_is_told_once_and_names_none():
    (f,) = under(varied(model="248"), {key: [finding()] for key in range(3)})
    assert f.title == "step was compiled once more"
    assert f.settings == ["--model=2", "--model=4", "--model=8"]


def test_what_one_has_names_it_and_figures_that_differ_are_findings_of_their_own():
    found = under(varied(model="24"), {0: [finding("x is f32[2]")], 1: [finding("x is f32[4]")]})
    assert {f.title: f.settings for f in found} == {
        "x is f32[2] (with --model=2)": ["--model=2"],
        "x is f32[4] (with --model=4)": ["--model=4"],
    }


@pytest.mark.parametrize(
    "places, said",
    [
        ((2, 3), "(with --a=2)"),  # both of its values of b
        ((1, 3), "(with --b=y)"),
        ((1, 2), "(with --a=1 --b=y; --a=2 --b=x)"),
        ((3,), "(with --a=2 --b=y)"),
    ],
)
def test_of_two_flags_the_one_that_makes_it_is_named_alone(places, said):
    (f,) = under(varied(a="12", b="xy"), {n: [finding()] for n in places})
    assert f.title == f"step was compiled once more {said}" and len(f.settings) == len(places)


def test_many_are_counted():
    (f,) = under(varied(a="123456"), {n: [finding()] for n in range(5)})
    assert f.title.endswith("(with --a=1; --a=2; --a=3 and 2 more)") and len(f.settings) == 5


def test_two_alike_under_one_setting_stay_two_and_errors_come_first():
    found = under(
        varied(a="12"), {0: [finding(severity=NOTE), finding(severity=NOTE)], 1: [finding("worse")]}
    )
    assert [f.title for f in found] == ["worse (with --a=2)"] + 2 * [
        "step was compiled once more (with --a=1)"
    ]


def test_a_flag_that_is_the_same_in_all_names_nothing_and_one_setting_alone_is_none():
    variants = [v._replace(settings={"LR": "0.1", **v.settings}) for v in varied(model="24")]
    assert list(told.groups(variants)) == ["--model=2", "--model=4"]
    (f,) = under(variants[:1], {0: [finding()]})
    assert f.settings == [] and f.title == "step was compiled once more"


def test_whose_ids_the_evidence_has_is_known_by_the_position_among_the_runs_within():
    variants = varied(model="248")
    found = under(variants, {n: [finding(f"x {n}", evidence=[Evidence("", f"c{n}")])] for n in range(3)})
    assert {f.title[:3]: told.sub_run(f, variants) for f in found} == {"x 0": None, "x 1": 0, "x 2": 1}
