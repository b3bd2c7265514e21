"""Steps of gradient descent for whole tables, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
import jax, jax.numpy as jnp, optax
table, i, y = jnp.ones((10_000, 32)), jnp.arange(64), jnp.ones(64)
loss = lambda table, i, y: jnp.mean((table[i].sum(-1) - y) ** 2)
grad = jax.grad(loss)
twice = jax.grad(lambda table, i, y: loss(table, i, y) + loss(table, i[:32] + 9, y[:32]))
scan = lambda table, i, y: jax.lax.scan(lambda t, k: (t - 0.1 * grad(t, k, y), None), table, jnp.stack([i, i]))[0]
momentum = lambda table, m, i, y: (table - 0.1 * (0.9 * m + grad(table, i, y)), 0.9 * m + grad(table, i, y))
regular = jax.grad(lambda table, i, y: loss(table, i, y) + 1e-3 * (table**2).sum())
sgd = optax.sgd(0.1)

def by_optax(table, i, y):
    updates, _ = sgd.update(grad(table, i, y), sgd.init(table))
    return optax.apply_updates(table, updates)
"""
FOUND = {
    "step": ("lambda table, i, y: table - 0.1 * grad(table, i, y)", 64),
    "two reads": ("lambda table, i, y: table - 0.1 * twice(table, i, y)", 96),
    "scan": ("scan", 64),
    "optax": ("by_optax", 64),
    "added": ("lambda table, i, y: table + grad(table, i, y) * -y[0]", 64),
}
NOT_FOUND = {
    "rows": "lambda table, i, y: table.at[i].add(-0.1 * jax.grad(lambda r: jnp.mean((r.sum(-1) - y) ** 2))(table[i]))",
    "momentum": "lambda table, i, y: momentum(table, table * 0, i, y)",
    "weight decay": "lambda table, i, y: table - 0.1 * regular(table, i, y)",
    "most rows": "lambda table, i, y: table - 0.1 * grad(table, jnp.arange(4000), jnp.ones(4000))",
    "gradient alone": "grad",
    "another table": "lambda table, i, y: table[::-1] - 0.1 * grad(table, i, y)",
}


@pytest.mark.capture
@pytest.mark.subprocess
def test_steps_of_gradient_descent_for_a_table_with_few_used_rows_are_found(lower):
    cases = {name: f for name, (f, _) in FOUND.items()} | NOT_FOUND
    code = CODE + "".join(f"save({name!r}, jax.jit({f}), table, i, y)\n" for name, f in cases.items())
    found = {name: analyze(text).row_gradients for name, text in lower(code).texts.items()}
    steps = {name: [(g.rows, g.used) for g in each] for name, each in found.items() if each}
    assert steps == {name: [(10_000, used)] for name, (_, used) in FOUND.items()}
    assert all(g.share is None or g.share > 0.5 for each in found.values() for g in each)
