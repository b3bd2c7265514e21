"""What to do about the arguments of a function under jax.pmap that are placed otherwise than its results."""

from __future__ import annotations

import pytest
from handwritten_runs import ONE_CPU, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.keys import Sharding

ONE = Sharding("NamedSharding", "P('r',) on r=1", "0", (("r", 1, "Auto"),), "PartitionSpec('r',)", "device")
BATCH = Sharding("NamedSharding", "P('b',) on b=1", "0", (("b", 1, "Auto"),), "PartitionSpec('b',)", "device")
PLACED = "before the first call, give state the sharding of the results of jax.pmap. Do this after state has got its first axis (one entry for each device): state = "


@pytest.fixture
def fixes(tmp_path):
    """``fixes(wrappers, sharding, ...)``: the advice after calls with an array that is placed like this."""

    def make(wrappers, *shardings):
        log = Log(store.create(tmp_path / "run"))
        step = function("step", wrappers=wrappers)
        log.say(step)
        for sharding in shardings:
            log.compiled(step, key(leaf("state.w", 1, 8), shardings=[sharding]))
        return [words.fix_text(f) for f in registry.findings(load(log.run)) if f.code in ("JX115", "JX120")]

    return make


def test_the_state_of_a_pmap_is_placed_before_the_first_call_as_its_results_are(fixes):
    [fix] = fixes(["jax.pmap"], ONE, BATCH)
    mesh = "jax.sharding.Mesh(jax.devices(), ('b',))"
    assert (
        fix
        == PLACED
        + f"jax.device_put(state, jax.sharding.NamedSharding({mesh}, jax.sharding.PartitionSpec('b')))"
    )


def test_a_pmap_without_axis_name_gets_its_sharding_from_another_pmap(fixes):
    name = "_internal_pmap_axis_name"
    unnamed = Sharding(
        "NamedSharding",
        f"P('{name}',) on {name}=1",
        "0",
        ((name, 1, "Auto"),),
        f"PartitionSpec('{name}',)",
        "device",
    )
    assert fixes(["jax.pmap"], ONE, unnamed) == [PLACED + "jax.pmap(lambda a: a)(state)"]


@pytest.mark.parametrize(
    ("wrappers", "shardings"),
    [([], (ONE, BATCH)), (["jax.pmap"], (BATCH, ONE_CPU))],
    ids=["jit", "one device"],
)
def test_without_a_pmap_and_its_mesh_the_advice_is_general(fixes, wrappers, shardings):
    [fix] = fixes(wrappers, *shardings)
    assert fix.startswith("wherever state is created")
