# weights that are restored after the first epoch are committed to a device, and so is all that is computed from them
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
weights = {"encoder": jnp.full((32, 16), 0.1, "float32"), "decoder": jnp.full((32, 16), 0.1, "float32")}
for epoch in range(3):
    h = encode(weights, x)  # must: JX116 first ~ also recompiled .*device_put
    y = decode(weights, h)
    print(distance(y, x))
    stored = jax.tree.map(np.asarray, weights)
    weights = jax.device_put(stored, jax.devices()[0])
