"""Random draws that are the same in each iteration of a loop, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
import jax, jax.numpy as jnp
from jax import lax
normal, fold_in, split = jax.random.normal, jax.random.fold_in, jax.random.split
x, key = jnp.ones(8), jax.random.key(0)

def scan(body):
    return lambda x, key: lax.scan(lambda x, k: (body(x, k, key), None), x, split(jax.random.key(1), 5))[0]

def carried(x, key):
    def body(carry, _):
        x, key = carry
        key, draw = split(key)
        return (x + normal(draw, x.shape), key), None
    return lax.scan(body, (x, key), None, 5)

def carried_unchanged(x, key):
    def body(carry, _):
        x, key = carry
        return (x + normal(fold_in(key, 3), x.shape), key), None
    return lax.scan(body, (x, key), None, 5)

@jax.jit
def noisy(x, key):
    return x + jax.random.uniform(split(key)[0], x.shape)
"""
FOUND = {
    "captured": ("lambda x, key: lax.fori_loop(0, 5, lambda i, x: x + normal(key, x.shape), x)", "_normal"),
    "split in the body": ("scan(lambda x, k, key: x + normal(split(key)[1], x.shape))", "_normal"),
    "carried unchanged": ("carried_unchanged", "_normal"),
    "in a function": ("scan(lambda x, k, key: noisy(x, key))", "_uniform"),
    "while": (
        "lambda x, key: lax.while_loop(lambda x: x.sum() < 9, lambda x: x + jax.random.bernoulli(key, 0.5, x.shape), x)",
        "_bernoulli",
    ),
}  # fmt: skip
NOT_FOUND = {
    "a key for each iteration": "scan(lambda x, k, key: x + normal(k, x.shape))",
    "counted": "lambda x, key: lax.fori_loop(0, 5, lambda i, x: x + normal(fold_in(key, i), x.shape), x)",
    "carried": "carried",
    "depends on the state": "scan(lambda x, k, key: x + normal(fold_in(key, x[0].astype(int)), x.shape))",
    "before the loop": "lambda x, key: (lambda n: lax.fori_loop(0, 5, lambda i, x: x + n, x))(normal(key, x.shape))",
    "an own key in a function": "scan(lambda x, k, key: noisy(x, k))",
}


@pytest.mark.capture
@pytest.mark.subprocess
def test_draws_with_the_same_key_in_each_iteration_are_found(lower):
    cases = {name: f for name, (f, _) in FOUND.items()} | NOT_FOUND
    code = CODE + "".join(f"save({name!r}, jax.jit({f}), x, key)\n" for name, f in cases.items())
    found = {name: analyze(text).loop_draws for name, text in lower(code).texts.items()}
    drawn = {name: [n for one in draws for n in one.functions] for name, draws in found.items() if draws}
    assert drawn == {name: [draw] for name, (_, draw) in FOUND.items()}
