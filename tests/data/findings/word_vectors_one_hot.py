# word vectors are picked by a product with one-hot rows; a filter of real signals uses the complex transform
import functools

import jax
import jax.numpy as jnp
import numpy as np

WORDS, DIM = 5000, 32


def score(params, centers, contexts):
    left = jax.nn.one_hot(centers, WORDS) @ params["in"]  # must: JX211 ~ one-hot matrix
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
    spectrum = jnp.fft.fft(signals)  # must: JX211 ~ complex Fourier transform of real numbers
    decay = jnp.exp(-jnp.abs(jnp.fft.fftfreq(signals.shape[-1])) * 20)
    return jnp.fft.ifft(spectrum * decay).real


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
