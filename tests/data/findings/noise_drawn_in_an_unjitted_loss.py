# Training steps outside jit, with noise from NumPy inside the loss: jit alone would use the same noise in all
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
inputs = rng.normal(size=(64, 16)).astype("float32")
targets = np.sin(inputs.sum(1))


def loss(params, x, y):
    noisy = x + 0.1 * np.random.standard_normal(x.shape).astype("float32")
    hidden = jnp.tanh(noisy @ params["w"] + params["b"])
    return jnp.mean((hidden @ params["v"] - y) ** 2) + 1e-3 * jnp.sum(params["w"] ** 2)  # must: JX605 first ~ jit to update.*np\.random\.standard_normal at .*:12 would run only while


def update(params, x, y):
    gradients = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


params = {"w": jnp.full((16, 24), 0.1, jnp.float32), "b": jnp.zeros(24), "v": jnp.ones(24) / 24}
for _ in range(300):
    params = update(
        params, inputs, targets
    )
print(jax.device_get(params["b"][:3]))
