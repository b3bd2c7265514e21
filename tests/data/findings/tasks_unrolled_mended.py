# Mended: vmap over the tasks
# applies: fix-vmap-without-sums
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

TASKS, SHOTS, WIDTH = 8, 4, 16


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def error(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def adapt(params, x, y):
    for _ in range(2):
        gradients = jax.grad(error)(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    return params


def meta_loss(params, xs, ys, xq, yq):
    adapted = jax.vmap(partial(adapt, params))(xs, ys)
    return jax.vmap(error)(adapted, xq, yq).mean()


@jax.jit
def step(params, xs, ys, xq, yq):
    loss, gradients = jax.value_and_grad(meta_loss)(params, xs, ys, xq, yq)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), loss


rng = np.random.default_rng(0)
sizes = [(1, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
params = [(rng.normal(size=s).astype("float32"), np.zeros(s[1], "float32")) for s in sizes]
for _ in range(4):
    batch = rng.normal(size=(4, TASKS, SHOTS, 1)).astype("float32")
    params, loss = step(params, *batch)
print(loss)
