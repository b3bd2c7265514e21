# a sampler draws the noise of each iteration from a key of its own
# applies: fix-key-of-iteration
import jax
import jax.numpy as jnp


def drift(x, t):
    return -x * (1.0 + t)


@jax.jit
def sample(key, start):
    k_start, k_noise = jax.random.split(key)
    x = start + jax.random.normal(k_start, start.shape)

    def body(i, x):
        t = i / 200
        noise = jax.random.normal(jax.random.fold_in(k_noise, i), x.shape)
        return x + 0.01 * drift(x, t) + 0.1 * noise

    return jax.lax.fori_loop(0, 200, body, x)


print(sample(jax.random.key(0), jnp.zeros((256, 2))).std())
