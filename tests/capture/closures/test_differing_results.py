"""Which results of a shard_map differ between devices that are declared to have the same. The truth is what the
devices have: this file is also a program that runs the cases on eight devices."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from jaxscope.capture.closures import differing_results

pytestmark = pytest.mark.capture

SIZES = {"data": 4, "model": 2}


@pytest.fixture(scope="module")
def mesh():
    axes = tuple(SIZES)
    return jax.sharding.AbstractMesh(
        tuple(SIZES.values()), axes, axis_types=(jax.sharding.AxisType.Auto,) * len(axes)
    )


def differing(mesh, function, *shapes, in_specs, out_specs, check=False):
    mapped = jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check)
    arguments = [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]
    found = differing_results.find(jax.make_jaxpr(jax.jit(mapped))(*arguments))
    return [(d.result, d.axes) for d in found]


def loss(w, x):
    return jnp.mean((x @ w) ** 2)


def step(w, x, *, average=(), mean=jax.lax.pmean):
    slope = jax.grad(loss)(w, x)
    return w - 0.1 * (mean(slope, average) if average else slope)


def in_scan(w, x):
    return jax.lax.scan(lambda w, row: (step(w, row[None]), jnp.sum(w)), w, x)


def in_while(w, x):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1], x)), (0, w))[1]


def until_small(w, x):
    """How often the loop runs depends on the part of the data."""
    return jax.lax.while_loop(lambda c: c.sum() < x.sum(), lambda c: c + 1, w)


def chosen(w, x):
    return jax.lax.cond(x.sum() > 0, lambda w: w, lambda w: -w, w)


def checkpointed(w, x):
    return jax.grad(lambda w: jnp.sum(jax.checkpoint(lambda x: jnp.tanh(x @ w))(x)))(w)


def picked(w, x):
    return jax.grad(lambda w: jnp.sum((x @ w)[jnp.array([0, 1, 1])]))(w)  # the gradient is a scatter


def dropped_out(w, x):
    key = jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("data"))

    def loss(w):
        kept = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0)
        return jax.lax.pmean(jnp.mean(jnp.tanh(kept @ w)), "data")

    return jax.grad(loss)(w)


CASES = {
    "a gradient that is not averaged": (step, ["data"]),
    "an averaged gradient": (lambda w, x: step(w, x, average="data"), []),
    "a sum": (lambda w, x: step(w, x, average="data", mean=jax.lax.psum), []),
    "a gathered batch": (lambda w, x: step(w, jax.lax.all_gather(x, "data", tiled=True)), []),
    "averaged over another axis": (lambda w, x: step(w, x, average="model"), ["data"]),
    "a loop with a carry": (lambda w, x: in_scan(w, x)[0], ["data"]),
    "a while loop": (in_while, ["data"]),
    "a while loop with another number of iterations": (until_small, ["data"]),
    "a conditional": (chosen, ["data"]),
    "under checkpoint": (checkpointed, ["data"]),
    "a gradient by a scatter": (picked, ["data"]),
    "a gradient with other random numbers on each device": (dropped_out, ["data"]),
    "nothing of the data": (lambda w, x: w * 2, []),
}


@pytest.mark.parametrize(("function", "axes"), CASES.values(), ids=CASES)
def test_a_missing_reduction_is_found(mesh, function, axes):
    shapes, specs = ((3,), (8, 3)), {"in_specs": (P(), P("data")), "out_specs": P()}
    assert differing(mesh, function, *shapes, **specs) == ([(0, axes)] if axes else [])


@pytest.mark.subprocess
def test_the_devices_have_different_values_where_that_is_said(clean_env):
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, timeout=300)
    assert json.loads(done.stdout) == {name: bool(axes) for name, (_, axes) in CASES.items()}, done.stderr


def test_the_axes_of_each_result_are_those_that_its_spec_does_not_have(mesh):
    def both(x):
        return x.sum(), x.sum(0), jax.lax.psum(x.sum(), "model")

    specs = {"in_specs": (P("data", "model"),), "out_specs": (P(), P("model"), P())}
    found = differing(mesh, both, (8, 6), **specs)
    assert found == [(0, ["data", "model"]), (1, ["data"]), (2, ["data"])]


def ring(x):
    total = x
    for _ in range(3):
        x = jax.lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)])
        total = total + x
    return total


NOT_FOLLOWED = {
    "a sum by a ring": ring,
    "the value of one device": lambda x: jnp.where(jax.lax.axis_index("data") == 0, x, 0.0),
    "exchanged": lambda x: jax.lax.all_to_all(x, "data", 0, 0, tiled=True),
}


@pytest.mark.parametrize("function", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_nothing_is_said_of_what_is_not_followed(mesh, function):
    assert differing(mesh, function, (16, 3), in_specs=(P("data"),), out_specs=P()) == []


def test_with_jaxs_own_check_nothing_is_followed(mesh):
    averaged = lambda w, x: step(w, x, average="data")
    specs = {"in_specs": (P(), P("data")), "out_specs": P()}
    assert differing(mesh, averaged, (3,), (8, 3), **specs, check=True) == []


def _on_devices():
    """Print for each case whether the devices have different values of the result."""
    mesh = jax.make_mesh(
        tuple(SIZES.values()), tuple(SIZES), axis_types=(jax.sharding.AxisType.Auto,) * len(SIZES)
    )
    w = jnp.array([0.1, 0.2, 0.3])
    x = jax.random.normal(jax.random.key(0), (8, 3)) * jnp.arange(-3, 5)[:, None]
    found = {}
    for name, (function, _) in CASES.items():
        specs = {"in_specs": (P(), P("data")), "out_specs": P(), "check_vma": False}
        result = jax.jit(jax.shard_map(function, mesh=mesh, **specs))(w, x)
        values = [jax.device_get(shard.data) for shard in result.addressable_shards]
        found[name] = any(bool((values[0] != other).any()) for other in values)
    print(json.dumps(found))


if __name__ == "__main__":
    _on_devices()
