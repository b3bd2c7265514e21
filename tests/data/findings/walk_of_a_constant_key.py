# a random walk: the function that makes the step creates its key from a constant
import jax
import jax.numpy as jnp


def step_of_all(x):
    key = jax.random.PRNGKey(7)
    return 0.1 * jax.random.normal(key, x.shape)


@jax.jit
def drift(x):
    return x - 0.01 * x


x = jnp.zeros((100, 2))
for i in range(50):
    step = step_of_all(x)  # must: JX135 first ~ step_of_all on line 18 draws .*PRNGKey\(7\)
    x = drift(x) + step
print(x.std(0))
