# an echo whose decay is fitted to a recording: the transforms have the length 40,009, a prime number
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
dry = jnp.asarray(rng.normal(size=(8, 32_000)).astype("f4"))
noise = jnp.asarray(rng.normal(size=8_010).astype("f4"))
time = jnp.arange(8_010) / 8_000


def echo(params, dry, noise):
    response = noise * jnp.exp(-jnp.exp(params["decay"]) * time)
    n = dry.shape[-1] + response.shape[-1] - 1
    spectrum = jnp.fft.rfft(dry, n) * jnp.fft.rfft(response, n)  # must: JX211 first ~ Fourier transforms whose length has a large prime factor
    return dry + jax.nn.sigmoid(params["wet"]) * jnp.fft.irfft(spectrum, n)[..., : dry.shape[-1]]


wet = jax.jit(echo)({"decay": jnp.float32(1.2), "wet": jnp.float32(-1.0)}, dry, noise)
optimizer = optax.adam(3e-2)


@jax.jit
def step(params, state, dry, wet, noise):
    value, grads = jax.value_and_grad(lambda p: ((echo(p, dry, noise) - wet) ** 2).mean())(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


params = {"decay": jnp.float32(0.0), "wet": jnp.float32(0.0)}
state = jax.jit(optimizer.init)(params)
for _ in range(60):
    params, state, value = step(params, state, dry, wet, noise)
print(f"{value:.5f}")
