# a sampler adds the noise of one key in each iteration of a fori_loop
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
        noise = jax.random.normal(k_noise, x.shape)  # must: JX135 first ~ k_noise is the same each time .*fold_in
        return x + 0.01 * drift(x, t) + 0.1 * noise

    return jax.lax.fori_loop(0, 200, body, x)


print(sample(jax.random.key(0), jnp.zeros((256, 2))).std())
