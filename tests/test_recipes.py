"""Each bad program of samples/recipes has exactly the findings that its comments promise, each good one none."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import recipes


@pytest.mark.capture
@pytest.mark.costly
@pytest.mark.subprocess
@pytest.mark.parametrize("kind", recipes.KINDS)
@pytest.mark.parametrize("name", recipes.names())
def test_a_program_has_the_findings_that_its_comments_promise(name, kind, tmp_path):
    assert recipes.difference(name, kind, recipes.record(name, kind, tmp_path)) == ""


def test_bad_programs_promise_findings_and_good_ones_none():
    for name in recipes.names():
        assert recipes.marked(name, "bad") and not recipes.marked(name, "good"), name


def test_a_program_is_read_in_a_few_minutes():
    for name in recipes.names():
        for kind in recipes.KINDS:
            assert len(recipes.program(name, kind).read_text().splitlines()) < 120, (name, kind)
