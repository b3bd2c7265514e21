# Mended: one jitted function computes the mean of the weights
# applies: fix-jit-lines
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(params, x):
    return jax.tree.map(
        lambda p, g: p - 1e-3 * g, params, jax.grad(lambda p: sum(jnp.sum((x @ w) ** 2) for w in p))(params)
    )


@jax.jit
def average(mean, params):
    mean = [0.9 * m + 0.1 * w for m, w in zip(mean, params)]
    return mean, sum(jnp.sum(m**2) for m in mean)


rng = np.random.default_rng(0)
params = [jnp.asarray(rng.normal(size=(16, 16)).astype("f4")) for _ in range(6)]
mean = [jnp.zeros_like(w) for w in params]
for epoch in range(1500):
    for _ in range(3):
        params = step(params, rng.normal(size=(8, 16)).astype("f4"))
    mean, norm = average(mean, params)
    np.asarray(norm)
print(float(norm))
