"""Equal findings of several settings and machines are one finding, which names them."""

import itertools

import pytest

from jaxscope.present import findings as words
from jaxscope.report.variants import Variant, groups, of_each, sub_run
from jaxscope.rules import merging
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, WARNING, Contexts, Evidence, Finding
from jaxscope.schema.messages import message


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


def finding(title="step recompiled", severity=WARNING, **more):
    return Finding("JX101", severity, CERTAIN, title, "step", **more)


def under(variants, by_position):
    """Return the merged findings where the n-th setting has the findings ``by_position[n]``."""
    at = {id(v): n for n, v in enumerate(variants)}
    return of_each(variants, lambda runs: by_position.get(at[id(runs[0])], []))


def test_what_every_setting_has_is_reported_once_and_names_none():
    (f,) = under(varied(model="248"), {key: [finding()] for key in range(3)})
    assert words.title(f) == "step recompiled"
    assert f.contexts.settings == ["--model=2", "--model=4", "--model=8"]


def test_what_one_setting_has_names_it():
    found = under(varied(model="24"), {0: [finding("x is f32[2]")], 1: [finding("x is f32[4]")]})
    assert {words.title(f): f.contexts.settings for f in found} == {
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
    assert words.title(f) == f"step recompiled {said}" and len(f.contexts.settings) == len(places)


def test_many_are_counted():
    (f,) = under(varied(a="123456"), {n: [finding()] for n in range(5)})
    assert words.title(f).endswith("(with --a=1; --a=2; --a=3 and 2 more)") and len(f.contexts.settings) == 5


def test_two_alike_under_one_setting_stay_two_and_errors_come_first():
    found = under(
        varied(a="12"), {0: [finding(severity=NOTE), finding(severity=NOTE)], 1: [finding("worse")]}
    )
    assert [words.title(f) for f in found] == ["worse (with --a=2)"] + 2 * ["step recompiled (with --a=1)"]


def test_a_flag_that_is_the_same_in_all_names_nothing_and_one_setting_alone_is_none():
    variants = [v._replace(settings={"LR": "0.1", **v.settings}) for v in varied(model="24")]
    assert list(groups(variants)) == ["--model=2", "--model=4"]
    (f,) = under(variants[:1], {0: [finding()]})
    assert f.contexts.settings == [] and words.title(f) == "step recompiled"


def test_whose_ids_the_evidence_has_is_known_by_the_position_among_the_runs_within():
    variants = varied(model="248")
    found = under(variants, {n: [finding(f"x {n}", evidence=[Evidence("", f"c{n}")])] for n in range(3)})
    assert {words.title(f)[:3]: sub_run(f, variants) for f in found} == {"x 0": None, "x 1": 0, "x 2": 1}


def sized(n, severity=WARNING):
    """A finding about ``x`` whose title has a figure."""
    title = message("made-there", path=f"x[{n}]")
    return Finding("JX101", severity, CERTAIN, title, "step", evidence=[Evidence("", f"c{n}")], subject="x")


def test_the_same_finding_with_other_figures_is_one_with_the_other_figures_as_evidence():
    variants = varied(model="24")
    (f,) = under(variants, {0: [sized(0)], 1: [sized(1)]})
    assert words.title(f) == "x[0] was created here" and f.contexts.named == []
    assert [words.evidence(e) for e in f.evidence] == ["", "with --model=4: x[1] was created here"]


def test_the_most_severe_of_equal_findings_leads_and_its_run_is_the_first():
    variants = varied(model="248")
    (f,) = under(variants, {0: [sized(0, NOTE)], 2: [sized(2, ERROR)]})
    assert (f.severity, f.contexts.settings) == (ERROR, ["--model=8", "--model=2"])
    assert words.title(f) == "x[2] was created here (with --model=2; --model=8)"
    assert sub_run(f, variants) == 1


def test_findings_of_one_title_about_different_things_stay_apart():
    one = Finding("JX101", WARNING, CERTAIN, "the same words", "step", subject="x")
    other = Finding("JX101", WARNING, CERTAIN, "the same words", "step", subject="y")
    assert len(under(varied(model="24"), {0: [one], 1: [other]})) == 2


@pytest.mark.parametrize(
    ("ran", "first", "all"),
    [
        (True, " (also for v5e:4x4)", " (also for v5e:4x4, a, b and 1 more)"),
        (False, " (for v5e:4x4)", " (for v5e:4x4, a, b and 1 more)"),
    ],
)
def test_targets_are_data_and_are_named_at_the_end(ran, first, all):
    f = Finding("JX401", WARNING, CERTAIN, "a title (of its own)")
    once = merging.for_targets(f, ["v5e:4x4"], ran=ran)
    assert (once.title, words.title(once)) == (f.title, f.title + first)
    more = merging.for_targets(once, ["a", "b", "c"], ran=once.contexts.ran)
    assert more.contexts == Contexts(ran=ran, targets=["v5e:4x4", "a", "b", "c"])
    assert words.title(more) == f.title + all and once.identity == more.identity


def test_the_findings_of_one_setting_keep_their_order():
    slow = Finding(
        code="JX133", severity="note", certainty="certain", title="a note of half a second", seconds=0.5
    )
    unknown = Finding(code="JX211", severity="warning", certainty="likely", title="a warning without seconds")
    assert merging.of_settings({"": [unknown, slow]}, {"": {}}) == [unknown, slow]
