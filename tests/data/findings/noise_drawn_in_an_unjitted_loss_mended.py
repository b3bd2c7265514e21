# Mended: update is jitted, and the noise is drawn before each call and passed as an argument
# applies: fix-jit-functions, fix-draw-outside
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
inputs = rng.normal(size=(64, 16)).astype("float32")
targets = np.sin(inputs.sum(1))


def loss(params, x, y, noise):
    noisy = x + noise
    hidden = jnp.tanh(noisy @ params["w"] + params["b"])
    return jnp.mean((hidden @ params["v"] - y) ** 2) + 1e-3 * jnp.sum(params["w"] ** 2)


@jax.jit
def update(params, x, y, noise):
    gradients = jax.grad(loss)(params, x, y, noise)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


params = {"w": jnp.full((16, 24), 0.1, jnp.float32), "b": jnp.zeros(24), "v": jnp.ones(24) / 24}
for _ in range(300):
    noise = 0.1 * np.random.standard_normal(inputs.shape).astype("float32")
    params = update(params, inputs, targets, noise)
print(jax.device_get(params["b"][:3]))
