# applies: fix-jit-making-function
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

    return jax.lax.scan(step, x, jax.random.split(key, n))[1]


def log_density(x):
    return -0.5 * jnp.sum(x**2)


@jax.jit
def of_size(key, size):
    return sample(key, make_kernel(log_density, size), jnp.zeros(2), 2000)


key = jax.random.key(0)
for k, size in enumerate([0.1, 0.2, 0.4, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0]):
    samples = of_size(jax.random.fold_in(key, k), size)
    print(size, samples.std())
