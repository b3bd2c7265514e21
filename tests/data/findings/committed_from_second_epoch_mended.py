# weights are committed to their device from the start
# applies: fix-commit-from-start
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def encode(w, x):
    return jax.nn.gelu(x @ w["encoder"]) @ w["encoder"].T


@jax.jit
def decode(w, h):
    return jnp.tanh(h @ w["decoder"]) @ w["decoder"].T


@jax.jit
def distance(a, b):
    return jnp.linalg.norm(a - b, axis=1).mean()


x = jnp.ones((64, 32))
start = {"encoder": jnp.full((32, 16), 0.1, "float32"), "decoder": jnp.full((32, 16), 0.1, "float32")}
weights = jax.device_put(start, jax.devices()[0])
for epoch in range(3):
    h = encode(weights, x)
    y = decode(weights, h)
    print(distance(y, x))
    stored = jax.tree.map(np.asarray, weights)
    weights = jax.device_put(stored, jax.devices()[0])
