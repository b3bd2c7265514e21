"""Random draws in programs lowered by the JAX at hand: equal ones, and those under vmap from one key for all
elements."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
def noisy(key, x):
    first, second = jax.random.split(key)
    return x + jax.random.normal(first, x.shape) * jax.random.bernoulli(second)  # draws

def folded(key, x):
    return noisy(jax.random.fold_in(key, x[0].astype(int)), x)

key, x = jax.random.key(0), jnp.ones((4, 8))
save("shared", jax.jit(jax.vmap(noisy, in_axes=(None, 0))), key, x)
save("captured", jax.jit(lambda key, x: jax.vmap(lambda x: noisy(key, x))(x)), key, x)
save("raw", jax.jit(jax.vmap(noisy, in_axes=(None, 0))), jax.random.PRNGKey(0), x)
save("rbg", jax.jit(jax.vmap(noisy, in_axes=(None, 0))), jax.random.key(0, impl="rbg"), x)
save("each", jax.jit(jax.vmap(noisy)), jax.random.split(key, 4), x)
save("folded", jax.jit(jax.vmap(folded, in_axes=(None, 0))), key, x)
def chain(x, key):
    def step(x, key):
        return x + jax.random.normal(key, x.shape), x.mean()  # step
    return jax.lax.scan(step, x, jax.random.split(key, 5))

save("chains", jax.jit(jax.vmap(chain, in_axes=(0, None))), x, key)
save("chains of their own", jax.jit(jax.vmap(chain)), x, jax.random.split(key, 4))
save("no vmap", jax.jit(noisy), key, x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_key_without_an_axis_of_the_vmap_is_the_same_for_all_elements(lower):
    found = lower(CODE)
    draws = {name: analyze(text).shared_draws for name, text in found.texts.items()}
    assert {name for name, each in draws.items() if each} == {"shared", "captured", "raw", "rbg", "chains"}
    [shared] = draws["shared"]
    assert shared.source.line == found.line("draws") and {*shared.functions} == {"_normal", "_bernoulli"}
    [chains] = draws["chains"]
    assert (chains.source.line, chains.functions, chains.in_loop) == (found.line("step"), ("_normal",), True)


LAYERS = """
def layer(key):
    a, b = jax.random.split(key)
    return jax.random.normal(a, (8, 4)), jax.random.normal(b, (4, 8)), jax.random.uniform(b, (8, 4))  # draws

def create(key):
    return [layer(k) for k in jax.random.split(key, 5)], jax.random.normal(key, (3, 3))

save("in a loop", jax.jit(create), jax.random.key(0))
save("in a jitted layer", jax.jit(lambda k: [jax.jit(layer)(k) for k in jax.random.split(k, 5)]), jax.random.key(0))
save("under vmap", jax.jit(lambda k: jax.vmap(layer)(jax.random.split(k, 5))), jax.random.key(0))
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_equal_draws_are_counted_by_shape_and_distribution(lower):
    found = lower(LAYERS)
    drawn = {name: analyze(text).repeated_draws for name, text in found.texts.items()}
    assert drawn["under vmap"] is None
    loop, jitted = drawn["in a loop"], drawn["in a jitted layer"]
    assert (loop.draws, loop.different, loop.source.line) == (16, 4, found.line("draws"))
    assert (jitted.draws, jitted.different, jitted.source.line) == (15, 3, found.line("draws"))
