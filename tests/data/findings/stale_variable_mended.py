"""A Langevin sampler of two wells, cooled by an argument of the jitted step."""

# applies: fix-pass-as-argument

import jax
import jax.numpy as jnp


def energy(x):
    return jnp.sum((x**2 - 1) ** 2 + 0.3 * x)


def anneal(key, steps=300):
    beta = 0.1

    @jax.jit
    def step(x, key, beta):
        noise = jax.random.normal(key, x.shape)
        return x - 0.01 * jax.grad(energy)(x) + jnp.sqrt(0.02 / beta) * noise

    x = jnp.zeros(256)
    for i in range(steps):
        x = step(x, jax.random.fold_in(key, i), beta)
        beta = min(20.0, beta * 1.02)
    return x


x = anneal(jax.random.key(0))
print(f"{float((x < 0).mean()):.2f} of the particles in the deeper well")
