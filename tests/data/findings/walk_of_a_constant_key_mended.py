# Mended: the function gets the number of the step, from which it makes its key
# applies: fix-new-key-to-draw
import jax
import jax.numpy as jnp


def step_of_all(x, i):
    key = jax.random.fold_in(jax.random.PRNGKey(7), i)
    return 0.1 * jax.random.normal(key, x.shape)


@jax.jit
def drift(x):
    return x - 0.01 * x


x = jnp.zeros((100, 2))
for i in range(50):
    step = step_of_all(x, i)
    x = drift(x) + step
print(x.std(0))
