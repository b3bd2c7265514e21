"""Keys that a function draws from and returns as the next key."""

import pytest

from jaxscope.analysis.returned_keys import find

DRAWS = """
from jax import random
def act(key, x):
    y = random.normal(key) + x
    return y, key
for _ in range(9):
    x, key = act(key, x)
"""
SPLITS = """
from jax import random
def act(key, x):
    key, sub = random.split(key)
    return random.normal(sub) + x, key
for _ in range(9):
    x, key = act(key, x)
"""
BRANCHES = """
import jax
def act(self, key, x):
    new = jax.random.uniform(key) < 0.1
    key, sub = jax.random.split(key)
    return jax.lax.cond(new, lambda k: jax.random.randint(k, (), 0, 4), lambda k: 0, sub), sub
for _ in range(9):
    x, key = agent.act(key, x)
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (DRAWS, [("key", 4, "key", 4, 7)]),
        (BRANCHES, [("sub", 6, "key", 4, 8)]),
        (SPLITS, []),
        (DRAWS.replace("x, key = act", "x, other = act"), []),
        (DRAWS.replace("return y, key", "return y, random.split(key)[0]"), []),
        (DRAWS.replace("act(key, x)\n", "act(other, x)\n"), []),
        (BRANCHES.replace("jax.random.uniform(key) < 0.1", "x > 0"), []),
        (None, []),
    ],
)
def test_the_next_call_draws_from_the_returned_key(source, expected):
    assert [(k.key, k.drawn, k.parameter, k.again, k.call) for k in find(source)] == expected
