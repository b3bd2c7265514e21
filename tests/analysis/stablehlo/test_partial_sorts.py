"""Sorts of which few elements are used, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
x, key = jnp.ones((50, 400)), jax.random.key(0)
few = lambda key: jax.random.choice(key, 400, (20,), replace=False)
save("first", jax.jit(lambda x: jnp.argsort(-x, axis=1)[:, :20]), x)
save("descending", jax.jit(lambda x: jnp.argsort(x, axis=1, descending=True)[:, :20]), x)
save("last", jax.jit(lambda x: jnp.sort(x, axis=1)[:, -5:]), x)
save("one", jax.jit(lambda x: jnp.sort(x, axis=1)[:, 0]), x)
save("chosen", jax.jit(few), key)
save("chosen for each", jax.jit(jax.vmap(few)), jax.random.split(key, 30))
save("permuted", jax.jit(lambda key: jax.random.permutation(key, 400)[:20]), key)
save("position", jax.jit(lambda x: jnp.argmax(jnp.argsort(-x, axis=1) == 7, axis=1)), x)
save("position and order", jax.jit(lambda x: (lambda o: (o, (o == 7).argmax(1)))(jnp.argsort(x, axis=1))), x)
save("nearest", jax.jit(lambda x: jnp.argmin(abs(jnp.sort(x, axis=1) - 7), axis=1)), x)
save("half", jax.jit(lambda x: jnp.sort(x, axis=1)[:, :200]), x)
save("whole", jax.jit(lambda x: jnp.sort(x, axis=1)), x)
save("inside", jax.jit(lambda x: jnp.sort(x, axis=1)[:, 100:105]), x)
save("median", jax.jit(lambda x: jnp.median(x, axis=1)), x)
save("also whole", jax.jit(lambda x: (jnp.argsort(x, axis=1)[:, :3], jnp.sort(x, axis=1))), x)
save("top_k", jax.jit(lambda x: jax.lax.top_k(x, 20)), x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_only_the_first_or_last_elements_of_a_sort_are_used(lower):
    found = {name: analyze(text).partial_sorts for name, text in lower(CODE).texts.items()}
    sizes = {
        name: [(s.rows, s.length, s.used, s.shuffles) for s in sorts]
        for name, sorts in found.items()
        if sorts
    }
    assert sizes == {
        "first": [(50, 400, 20, False)],
        "descending": [(50, 400, 20, False)],
        "last": [(50, 400, 5, False)],
        "one": [(50, 400, 1, False)],
        "chosen": [(1, 400, 20, True)],
        "chosen for each": [(30, 400, 20, True)],
        "permuted": [(1, 400, 20, True)],
        "position": [(50, 400, 0, False)],
        "also whole": [(50, 400, 3, False)],
    }
