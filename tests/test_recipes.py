"""Bad programs of samples/recipes have exactly the findings that their comments promise, good ones none."""

import os
import sys
from pathlib import Path

import pytest

from jaxscope.rules import registry

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import recipes

# Four kinds: a recompile, memory, a limit, several processes. benchmarks/recipes.py runs all, as does
# JAXSCOPE_TEST_SLOW=1 pytest tests/test_recipes.py.
SOME = ("shapes", "donation", "remat", "ranks_program")
RUN = recipes.names() if os.environ.get("JAXSCOPE_TEST_SLOW") else SOME
NO_PAIR = {
    "JX190": "the gate, a limit that the user sets",
    "JX191": "a limit that the user sets",
    "JX291": "a limit that the user sets",
    "JX491": "a limit that the user sets",
    "JX592": "a limit that the user sets",
    "JX801": "needs the compiler of a TPU or a GPU",
    "JX854": "needs processes whose compilers differ",
    "JX901": "of jaxscope check, about what was not recorded",
    "JX902": "of jaxscope check, about a comment that ignores nothing",
}


@pytest.mark.capture
@pytest.mark.costly
@pytest.mark.subprocess
@pytest.mark.parametrize("kind", recipes.KINDS)
@pytest.mark.parametrize("name", RUN)
@pytest.mark.long
def test_a_program_has_the_findings_that_its_comments_promise(name, kind, tmp_path):
    assert recipes.difference(name, kind, recipes.record(name, kind, tmp_path)) == ""


def test_bad_programs_promise_findings_and_good_ones_none():
    for name in recipes.names():
        assert recipes.marked(name, "bad") and not recipes.marked(name, "good"), name


def test_a_program_is_read_in_a_few_minutes():
    for name in recipes.names():
        for kind in recipes.KINDS:
            assert len(recipes.program(name, kind).read_text().splitlines()) < 120, (name, kind)


def test_every_rule_but_those_about_baselines_stands_in_a_pair_or_has_a_reason():
    shown = {code for name in recipes.names() for code, _ in recipes.marked(name, "bad")}
    wanted = {code for code, rule in registry.rules().items() if not code.startswith("JX7")}
    assert wanted - shown == set(NO_PAIR), "a rule without a pair needs a reason; one with a pair needs none"


@pytest.mark.parametrize("minor", recipes.MINORS)
def test_the_page_has_a_row_for_every_pair(minor):
    assert [line.split("`")[1] for line in recipes.table_of(minor)] == recipes.names()


@pytest.mark.parametrize("minor", recipes.MINORS)
def test_the_page_has_the_layouts_side_by_side(minor):
    rows = {line.split("`")[3]: line for line in recipes.table_of(minor, "settings")}
    assert {f"LAYOUT={name}" for name in ("replicated", "batch", "model", "full")} <= set(rows)
    assert " none " in rows["LAYOUT=replicated"] and "over model" in rows["LAYOUT=model"]
    assert "over data" in rows["LAYOUT=full"] and "over model" in rows["LAYOUT=full"]
