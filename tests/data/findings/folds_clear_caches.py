# a cross-validation clears JAX's caches before each fold, so the creation of the parameters compiles again, too
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(400, 6)).astype("f4")
y = (np.sin(x[:, :1]) + x[:, 1:2] ** 2).astype("f4")


def parameters(key):
    sizes = (6, 16, 24, 1)
    keys = jax.random.split(key, 3)
    layers = []
    for key, before, after in zip(keys, sizes, sizes[1:]):
        w = jax.random.truncated_normal(key, -2.0, 2.0, (before, after)) / jnp.sqrt(before)  # must: JX133 first ~ JAX's caches were cleared before most of these.*JAX recompiled step.*, too, because.*do not clear the caches
        layers.append((w, jnp.zeros(after)))
    return layers


@jax.jit
def step(params, x, y):
    def loss(params):
        h = x
        for w, b in params[:-1]:
            h = jnp.tanh(h @ w + b)
        return ((h @ params[-1][0] + params[-1][1] - y) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value


for fold in range(5):
    jax.clear_caches()
    params = parameters(jax.random.key(fold))
    kept = np.arange(400) % 5 != fold
    for _ in range(30):
        params, value = step(params, x[kept], y[kept])
    print(f"{value:.4f}")
