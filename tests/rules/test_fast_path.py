"""Calls that miss JAX's fast path: the first of each kind of argument are no news, for each function object."""

import pytest
from written import Log, function, key, leaf

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
