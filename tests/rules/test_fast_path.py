"""Calls that miss JAX's fast path: the first of each kind of argument are no news, for each function object."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.rules import registry

STEP = function("make_step.<locals>.step")


@pytest.mark.parametrize(("objects", "calls", "findings"), [(4, 1, 0), (1, 4, 1)])
def test_one_such_call_of_each_function_object_is_no_finding(tmp_path, objects, calls, findings):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for made in range(objects):
        log.compiled(STEP, key(leaf("n", type="int"), function_object=made))
        for _ in range(calls):
            log.missed(STEP, key(leaf("n"), function_object=made))
            log.missed(STEP, key(leaf("n", type="int"), function_object=made))
    log.end()
    found = [f for f in registry.findings(load(log.run)) if f.code == "JX123"]
    assert len(found) == findings


@pytest.mark.parametrize(("programs", "findings"), [(4, 0), (1, 1)])
def test_two_such_calls_of_each_program_are_no_finding(tmp_path, programs, findings):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for size in range(programs):
        log.compiled(STEP, key(leaf("n", type="int"), leaf("x", size)))
    for size in [0, 1, 2, 3] if programs > 1 else [0] * 4:
        log.missed(STEP, key(leaf("n"), leaf("x", size)))
    log.end()
    found = [f for f in registry.findings(load(log.run)) if f.code == "JX123"]
    assert len(found) == findings


IN_BRANCHES = """
import jax, jax.numpy as jnp

@jax.jit
def shown(x):
    jax.lax.cond(x.sum() > 100, lambda: jax.debug.print("large"), lambda: None)
    return x * 2

@jax.jit
def checked(x):
    jax.lax.cond(jnp.isnan(x).any(), lambda: jax.debug.callback(print, x), lambda: None)
    return x * 2

for _ in range(5):
    shown(jnp.ones(3)), checked(jnp.ones(3))
"""


@pytest.mark.capture
def test_an_error_check_that_may_never_run_is_not_to_be_removed(record):
    found = [f for f in registry.findings(load(record(IN_BRANCHES).run)) if f.code == "JX125"]
    assert [f.function.partition(" ")[0].partition("@")[0][:5] for f in found] == ["shown"]
