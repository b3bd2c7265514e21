# Mended: the rows are taken by their indices, and the transform is the one for real numbers
# applies: fix-take-rows, fix-rfft
import functools

import jax
import jax.numpy as jnp
import numpy as np

WORDS, DIM = 5000, 32


def score(params, centers, contexts):
    left = params["in"][centers]
    right = params["out"][contexts]
    return jnp.sum(left * right, axis=-1)


def loss_fn(params, centers, contexts, signs):
    return -jnp.mean(jax.nn.log_sigmoid(signs * score(params, centers, contexts)))


@functools.partial(jax.jit, donate_argnums=0)
def step(params, centers, contexts, signs):
    loss, grads = jax.value_and_grad(loss_fn)(params, centers, contexts, signs)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), loss


@jax.jit
def smooth(signals):
    spectrum = jnp.fft.rfft(signals)
    decay = jnp.exp(-jnp.fft.rfftfreq(signals.shape[-1]) * 20)
    return jnp.fft.irfft(spectrum * decay, signals.shape[-1])


rng = np.random.default_rng(0)
params = {name: rng.normal(size=(WORDS, DIM)).astype(np.float32) * 0.1 for name in ("in", "out")}
params = jax.device_put(params)
losses = []
for _ in range(20):
    batch = (rng.integers(0, WORDS, 256), rng.integers(0, WORDS, 256), rng.choice([-1.0, 1.0], 256).astype(np.float32))
    params, loss = step(params, *batch)
    losses.append(loss)
curves = rng.normal(size=(256, 4096)).astype(np.float32)
for _ in range(3):
    curves = smooth(curves)
print(f"{float(losses[-1]):.3f}", float(jnp.abs(curves).max()))
