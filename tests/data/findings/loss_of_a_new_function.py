# each update defines a function and passes it on to the one that differentiates
# may: JX601 note, JX133 note
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def values(params, x):
    for w, b in params[:-1]:
        x = jnp.maximum(0, w @ x + b)
    w, b = params[-1]
    return w @ x + b


def squared(function, params, x, y):
    return jnp.mean((function(params, x) - y) ** 2)


def descend(function, params, x, y):
    gradients = jax.grad(squared, argnums=1)(function, params, x, y)  # must: JX605|JX133 first ~ apply jit to update
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)


def update(params, observed, actions, rewards):
    def of_actions(params, observed):
        every = jax.vmap(values, in_axes=(None, 0))(params, observed)
        return jnp.take_along_axis(every, actions[:, None], axis=1)[:, 0]

    return descend(of_actions, params, observed, rewards)


rng = np.random.default_rng(0)
sizes = [(32, 4), (32, 32), (2, 32)]
params = [(rng.normal(0, 0.3, s).astype("float32"), np.zeros(s[0], "float32")) for s in sizes]
for _ in range(400):
    observed = rng.normal(size=(256, 4)).astype("float32")
    params = update(params, observed, rng.integers(0, 2, 256), rng.normal(size=256).astype("float32"))
print(params[0][1].sum())
