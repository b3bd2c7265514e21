# Mended: the noise comes from a key that is an argument, another one in each step
# applies: fix-draw-with-jax
import jax
import jax.numpy as jnp


@jax.jit
def step(w, x, key):
    noise = jax.random.normal(key, x.shape)
    return w - 0.1 * jax.grad(lambda w: jnp.mean(((x + noise) @ w) ** 2))(w)


w, key = jnp.ones((16, 4)), jax.random.key(0)
for n in range(5):
    w = step(w, jnp.ones((8, 16)), jax.random.fold_in(key, n))
print(w.sum())
