"""Many programs compiled for eight CPU devices: their texts say what XLA's binary form of them says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from hlo_cases import TESTS

sys.path.insert(0, str(TESTS.parent / "benchmarks"))
import modules

pytestmark = [pytest.mark.capture, pytest.mark.costly]

# Loops whose trip count jaxscope leaves open: it follows no products, choices and limits, and the count of one
# loop may differ from entry to entry.
OPEN = {"unusual_loops", "triangular_loop", "counters", "converted_counters", "carried_bounds"}
# Their modules for CPU have nothing that those of others lack.
FOR_ACCELERATORS = {"large_transformer", "windowed_products", "overlapped", "overlapped_loops"}
NAMES = [name for name in modules.programs() if name not in FOR_ACCELERATORS]


@pytest.fixture(scope="module")
def compiled(made_once, clean_env):
    """The folder that tests/programs/many_modules.py wrote."""

    def make(folder):
        program = [sys.executable, str(TESTS / "programs" / "many_modules.py"), str(folder), *NAMES]
        ended = subprocess.run(program, env=clean_env, capture_output=True, text=True, timeout=240)
        assert ended.returncode == 0, ended.stderr[-4000:]
        return folder

    return made_once("many_modules", make)


def parts(folder, name):
    binary = (folder / f"{name}.hlo.pb").read_bytes()
    return (folder / f"{name}.hlo.txt").read_text(), binary, json.loads((folder / f"{name}.json").read_text())


def test_every_program_is_read_as_its_binary_form_says(compiled):
    found, failed = {}, {}
    for name in NAMES:
        facts = json.loads((compiled / f"{name}.json").read_text())
        if "error" in facts:
            failed[name] = facts["error"]
        else:
            found[name] = modules.compare(*parts(compiled, name))
    assert failed.keys() <= {"ragged_exchange"}, failed  # XLA has it on accelerators only
    assert len(found) >= 48
    assert {name: c.differs for name, c in found.items() if c.differs} == {}
    assert {name: c.unknown for name, c in found.items() if c.unknown and name not in OPEN} == {}
    assert {name for name, c in found.items() if c.not_compared} == {"groups_of_indices"}
    things = sum((Counter(c.counts) for c in found.values()), Counter())
    assert things["collectives"] > 200 and things["fusions"] > 700 and things["loops"] > 40


@pytest.mark.parametrize(
    ("name", "before", "after", "figures"),
    [
        ("nested_loops", '"known_trip_count":{"n":"5"}', '"known_trip_count":{"n":"6"}', "loops"),
        ("exclusive_branches", " all-gather(", " all-to-all(", "collectives"),
        ("groups_of_indices", "{{0,1},{2,3},", "{{0,3},{1,2},", "collectives"),
        ("permutes_of_some", "{{7,0}}", "{{7,7}}", "collectives"),
        ("donated", "may-alias", "must-alias", "aliases"),
        ("one_array", "kind=kLoop", "kind=kInput", "fusions"),
        ("one_device", "f32[17,24]", "f32[18,24]", "bytes of arguments"),
    ],
)
def test_a_text_that_says_something_else_is_noticed(compiled, name, before, after, figures):
    text, binary, facts = parts(compiled, name)
    assert before in text
    assert any(
        line.startswith(figures)
        for line in modules.compare(text.replace(before, after), binary, facts).differs
    )
