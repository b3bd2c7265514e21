# Mended: the loss is jitted, too
# applies: fix-jit-step-function, python-values-static
import jax
import jax.numpy as jnp
import numpy as np
import optax

data = np.random.default_rng(0).normal(size=(512, 2)).astype(np.float32)
flips = [0, 1, 0, 1, 0, 1]


def log_likelihood(layers, x):
    total = 0.0
    for layer in layers:
        a, b = x[:, :1], x[:, 1:]
        if layer["flip"]:
            a, b = b, a
        hidden = jnp.tanh(a @ layer["in"] + layer["bias"])
        scale = jnp.tanh(hidden @ layer["scale"])
        b = (b - hidden @ layer["shift"]) * jnp.exp(-scale)
        total = total - jnp.sum(scale, axis=1)
        x = jnp.concatenate([b, a] if layer["flip"] else [a, b], axis=1)
    return total - 0.5 * jnp.sum(jnp.square(x), axis=1) - jnp.log(2 * jnp.pi)


@jax.jit
def loss(params, x):
    return -jnp.mean(log_likelihood([{**p, "flip": flip} for p, flip in zip(params, flips, strict=True)], x))


def drawn(key):
    keys = jax.random.split(key, 3)
    return {
        "in": jax.random.normal(keys[0], (1, 16)),
        "bias": jnp.zeros(16),
        "scale": 0.1 * jax.random.normal(keys[1], (16, 1)),
        "shift": 0.1 * jax.random.normal(keys[2], (16, 1)),
    }


params = [drawn(key) for key in jax.random.split(jax.random.key(0), len(flips))]
optimizer = optax.adam(1e-3)
state = optimizer.init(params)


@jax.jit
def step(params, state, x):
    updates, state = optimizer.update(jax.grad(loss)(params, x), state)
    return optax.apply_updates(params, updates), state


for epoch in range(3):
    for begin in range(0, 512, 128):
        params, state = step(params, state, data[begin : begin + 128])
    print(epoch, loss(params, data))
