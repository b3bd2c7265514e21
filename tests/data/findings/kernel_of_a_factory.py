# a sampling loop gets a new kernel from a factory in each call: its scan is compiled each time
# may: JX133 note
import jax
import jax.numpy as jnp


def make_kernel(log_density, size):
    def kernel(key, x):
        first, second = jax.random.split(key)
        proposed = x + size * jax.random.normal(first, x.shape)
        accepted = jnp.log(jax.random.uniform(second)) < log_density(proposed) - log_density(x)
        return jnp.where(accepted, proposed, x)

    return kernel


def sample(key, kernel, x, n):
    def step(x, key):
        x = kernel(key, x)
        return x, x

    return jax.lax.scan(step, x, jax.random.split(key, n))[1]  # must: JX133 first ~ a new function as kernel


def log_density(x):
    return -0.5 * jnp.sum(x**2)


key = jax.random.key(0)
for k, size in enumerate([0.1, 0.2, 0.4, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0]):
    samples = sample(jax.random.fold_in(key, k), make_kernel(log_density, size), jnp.zeros(2), 2000)
    print(size, samples.std())
