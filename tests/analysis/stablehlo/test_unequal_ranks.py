"""Arrays of shape [N, 1] combined with arrays of shape [N], in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
x, y, v = jnp.ones((32, 4)), jnp.ones(32), jnp.ones((32, 3))
w = [jnp.ones((4, 8)), jnp.ones((8, 1))]
column = jnp.ones((32, 1))
square = jnp.ones((32, 32))


def net(w, x):
    return jnp.tanh(x @ w[0]) @ w[1]


def loss(w, x, y):
    return jnp.mean((net(w, x) - y) ** 2)


def huber(w, x, y):
    e = jnp.abs(net(w, x) - y)
    return jnp.where(e < 1, 0.5 * e * e, e - 0.5).mean()


def descend(w, x, y):
    return jax.lax.scan(lambda w, _: (jax.tree.map(jnp.subtract, w, jax.grad(loss)(w, x, y)), None), w, None, 10)[0]


@jax.jit
def squares(p, y):
    return jnp.sum((p - y) ** 2)


save("loss", jax.jit(loss), w, x, y)
save("gradient", jax.jit(jax.grad(loss)), w, x, y)
save("both", jax.jit(jax.value_and_grad(huber)), w, x, y)
save("gradient of where", jax.jit(jax.grad(huber)), w, x, y)
save("in a scan", jax.jit(descend), w, x, y)
save("kinetic energy", jax.jit(lambda m, v: jnp.sum(0.5 * m * jax.vmap(jnp.dot)(v, v))), column, v)
save("accuracy", jax.jit(lambda w, x, y: jnp.mean((net(w, x) > 0) == y)), w, x, y > 0)
save("called twice", jax.jit(lambda w, x, y: squares(net(w, x), y) + squares(x @ w[0] @ w[1], y)), w, x, y)
save("density", jax.jit(lambda w, x, y: jax.scipy.stats.norm.logpdf(y, net(w, x), 2.0).sum()), w, x, y)
save("carried sum", jax.jit(lambda m, y: jax.lax.fori_loop(0, 9, lambda i, s: (s[0] * 2, s[1] + 1, s[2] + jnp.sum((s[0] - s[1]) ** 2)), (m, y, 0.0))), column, y)
save("equal shapes", jax.jit(lambda w, x, y: jnp.mean((net(w, x)[:, 0] - y) ** 2)), w, x, y)
save("pairs", jax.jit(lambda x, y: jnp.mean(jnp.exp(-((x[:, None] - y) ** 2)))), y, y)
save("pairs of scaled", jax.jit(lambda x, y: jnp.mean(jnp.exp(-((2 * jnp.sin(x[:, None]) + 1 - y) ** 2)))), y, y)
save("kernel", jax.jit(lambda p, y: jnp.sum(jnp.exp(-((p - y) ** 2)) @ y)), column, y)
save("returned", jax.jit(lambda p, y: (p - y, jnp.sum(p - y))), column, y)
save("nearest", jax.jit(lambda p, y: jnp.sum(jnp.min(jnp.abs(p - y), axis=1))), column, y)
save("gradient of rows", jax.jit(jax.grad(lambda p, y: jnp.sum(y * jnp.sum(jnp.sin(p - y), axis=1)))), column, y)
save("with a matrix", jax.jit(lambda p, y, a: jnp.sum(a * (p - y) ** 2)), column, y, square)
save("with itself", jax.jit(lambda p: jnp.sum((p - p[:, 0]) ** 2)), column)
save("row by hand", jax.jit(lambda p, y: jnp.sum((p - y.reshape(1, -1)) ** 2)), column, y)
save("lower triangle", jax.jit(lambda p, y: jnp.sum(jnp.tril(p - y))), column, y)
save("means of rows", jax.jit(lambda x, y: jnp.sum((x.mean(1, keepdims=True) - y) ** 2)), x, y)
save("few", jax.jit(lambda w, x, y: loss(w, x, y)), w, x[:7], y[:7])
save("maximum", jax.jit(lambda p, y: jnp.max(jnp.abs(p - y))), column, y)
"""
ACCIDENTS = {
    *("loss", "gradient", "both", "gradient of where", "in a scan", "kinetic energy", "accuracy"),
    *("called twice", "density", "carried sum"),
}


@pytest.mark.capture
@pytest.mark.subprocess
def test_columns_combined_with_vectors_and_then_summed(lower):
    found = {name: analyze(text).unequal_ranks for name, text in lower(CODE).texts.items()}
    sizes = {name: [one.size for one in each] for name, each in found.items() if each}
    assert sizes == {name: [32] for name in ACCIDENTS}
