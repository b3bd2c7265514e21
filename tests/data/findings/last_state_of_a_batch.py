# A batch of simulations records a spectrum in each step, and only that of the last step is read
import jax
import jax.numpy as jnp


@jax.jit
def simulate(x, w):
    def step(x, _):
        x = jnp.tanh(w @ x)
        return x, jnp.sin(w @ jnp.sin(w @ jnp.sin(w @ x)))

    return jax.lax.scan(step, x, None, 500)  # must: JX514 first ~ the last iteration is read, compute the values from the carry


@jax.jit
def last_of_batch(xs, w):
    _, records = jax.vmap(simulate, (0, None))(xs, w)
    return records[:, -1]


w = jax.random.normal(jax.random.key(0), (300, 300)) / 17
xs = jnp.ones((8, 300))
for _ in range(20):
    xs = last_of_batch(xs, w)
print(xs.shape)
