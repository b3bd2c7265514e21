"""A key of random numbers that a function captures is a finding where each call draws the same numbers from it."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules.registry import findings

PROGRAM = """
import jax, jax.numpy as jnp
raw, key = jax.random.PRNGKey(0), jax.random.key(1)
x = jnp.ones(3)
class Net:
    def __init__(self): self.rng = jax.random.key(2)
    def apply(self, x): return x * jax.random.bernoulli(jax.random.split(self.rng)[1], 0.5, x.shape)
net = jax.jit(Net().apply)
@jax.jit
def mask(x): return x * jax.random.bernoulli(raw, 0.5, x.shape)
@jax.jit
def eval_step(x): return x + jax.random.normal(key, x.shape)
@jax.jit
def scanned(x): return jax.lax.scan(lambda c, y: (c + jax.random.normal(key), y), 0.0, x)
@jax.jit
def folded(x, i): return x + jax.random.normal(jax.random.fold_in(key, i), x.shape)
@jax.jit
def passed(x, k): return x + jax.random.normal(k, x.shape)
@jax.jit
def no_arguments(): return jax.random.normal(key, (3,))
@jax.jit
def split_only(x): return jax.random.split(key), x
@jax.jit
def numbers(x): return x + raw[0]
@jax.jit
def seeded(x): return x + jax.random.normal(jax.random.key(42), x.shape)
@jax.jit
def seeded_init(x): return x + jax.random.normal(jax.random.key(42), x.shape)
@jax.jit
def init(x): return x + jax.random.normal(key, x.shape)
init(x), seeded_init(x)
for i in range(3):
    net(x), mask(x), scanned(x), eval_step(x), seeded(x)
    folded(x, i), passed(x, key), no_arguments(), split_only(x), numbers(x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_only_functions_whose_numbers_are_the_same_in_each_call_are_found(record):
    found = [f for f in findings(load(record(PROGRAM).run)) if f.code == "JX134"]
    titles = sorted(words.title(f) for f in found)
    again = "draws the same random numbers in each call"
    assert titles == [
        f"Net.apply {again}: self.rng is a constant of its compiled program",
        f"eval_step {again}: key is a constant of its compiled program",
        f"mask {again}: raw is a constant of its compiled program",
        f"scanned {again}: key is a constant of its compiled program",
        f"seeded {again}: its random key (made from a seed in its code) is a constant of its compiled program",
    ]
    assert all(f.source is not None and "pass the random key" in words.fix_text(f) for f in found)
    assert [f.function.partition("@")[0] for f in found if f.severity == "note"] == ["eval_step"]


ON_DEVICES = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
def mapped(f, x=P("data"), key=P()):
    f.__name__ = f.__qualname__ = names.pop(0)
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=(x, key), out_specs=x))
def noise(x, key): return x + jax.random.normal(key, x.shape)
def of_device(x, key): return noise(x, jax.random.fold_in(key, jax.lax.axis_index("data")))
names = ["alike", "scanned", "step_folded", "of_device", "own_keys", "whole", "masked"]
names += ["for_weights", "shuffled", "projected"]
x, key = jnp.ones((4, 2)), jax.random.key(0)
mapped(lambda x, key: noise(x, key))(x, key)
mapped(lambda x, key: jax.lax.scan(lambda c, _: (noise(c, key), None), x, None, length=2)[0])(x, key)
mapped(lambda x, key: noise(x, jax.random.split(jax.random.fold_in(key, 3))[0]))(x, key)
mapped(lambda x, key: of_device(x, key))(x, key)
mapped(lambda x, key: noise(x, key[0]), key=P("data"))(x, jax.random.split(key))
mapped(lambda x, key: noise(x, key), x=P())(x, key)
mapped(lambda x, key: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0))(x, key)
# What all devices need alike: noise for what they have alike, an order, a projection.
mapped(lambda x, key: x * noise(jax.lax.psum(x.sum(0), "data"), key))(x, key)
mapped(lambda x, key: x[jax.random.permutation(key, x.shape[0])])(x, key)
mapped(lambda x, key: x @ jax.random.normal(key, (2, 2)))(x, key)
jax.pmap(noise, in_axes=(0, None))(x.reshape(2, 2, 2), key)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_key_that_all_devices_draw_from_alike_is_found_where_their_data_differ(record):
    env = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    found = [f for f in findings(load(record(ON_DEVICES, env=env).run)) if f.code == "JX136"]
    names = {words.title(f).partition(" draws the same")[0] for f in found}
    assert names == {"alike", "scanned", "step_folded", "masked", "noise"}
    assert all(
        "every device receives the same key" in words.title(f) and f.path == "key"
        for f in found
        if "noise" not in f.function
    )
