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
def init(x): return x + jax.random.normal(key, x.shape)
init(x)
for i in range(3):
    net(x), mask(x), scanned(x)
    folded(x, i), passed(x, key), no_arguments(), split_only(x), numbers(x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_only_functions_whose_numbers_are_the_same_in_each_call_are_found(record):
    found = [f for f in findings(load(record(PROGRAM).run)) if f.code == "JX134"]
    titles = sorted(words.title(f).partition(" and no argument")[0] for f in found)
    again = "draws the same random numbers in each call"
    assert titles == [
        f"Net.apply {again}: self.rng is a constant of its program,",
        f"mask {again}: raw is a constant of its program,",
        f"scanned {again}: key is a constant of its program,",
    ]
    assert all(f.source is not None and "pass a key" in words.fix_text(f) for f in found)
