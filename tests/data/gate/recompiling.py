"""A suite of tests for the pytest plugin: labelled programs that recompile in their third step, and their clean twins.

``GATE_CASES`` (JSON: changed, clean) names the cases of tests/data/causes. Copied to a folder as test_recompiling.py and run there.
"""

import json
import os

import pytest
from causes import CASES

import jax

import jaxscope

NAMES = json.loads(os.environ["GATE_CASES"])


def chosen(which):
    return [marked(c) for c in CASES if c.name in NAMES[which]]


def marked(case):
    of = "*" if case.eager else f"*{case.function.rpartition('.')[2]}*"
    return pytest.param(case, id=case.name, marks=pytest.mark.no_recompiles(after=2, functions=of))


def steps(case, clean):
    warm, measured = case.make()
    jaxscope.step()  # what the program makes first is compiled in step 1
    for _ in range(case.warm):
        warm()
    jax.effects_barrier()
    jaxscope.step()
    (warm if clean else measured)()
    jax.effects_barrier()
    jaxscope.step()


@pytest.mark.parametrize("case", chosen("changed"))
def test_changed(case):
    steps(case, clean=False)


@pytest.mark.parametrize("case", chosen("clean"))
def test_clean(case):
    steps(case, clean=True)
