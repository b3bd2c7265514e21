# applies: fix-equal-ranks
# A small network is fitted to measurements; its output has a column for each result, the measurements have none
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, (64, 3)).astype(np.float32)
y = np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def step(params, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


sizes = [3, 16, 16, 1]
params = [
    (jnp.asarray(rng.normal(size=(m, n), scale=m**-0.5), jnp.float32), jnp.zeros(n)) for m, n in zip(sizes, sizes[1:])
]
x, y = jnp.asarray(x), jnp.asarray(y)
for _ in range(200):
    params, value = step(params, x, y)
print(f"{float(value):.3f}")
