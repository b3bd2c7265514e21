# Mended: one jitted function cuts all windows
# applies: fix-dynamic-slice, fix-inner-loop, fix-loop-by-vmap, fix-jit-iteration
import jax
import jax.numpy as jnp

series = jnp.sin(jnp.arange(50_000, dtype=jnp.float32))


@jax.jit
def batch(key):
    begins = jax.random.randint(key, (16,), 0, len(series) - 64)
    return jax.vmap(lambda i: jax.lax.dynamic_slice_in_dim(series, i, 64))(begins)


@jax.jit
def step(w, x):
    return w - 1e-4 * jax.grad(lambda w: jnp.mean((x[:, :-1] @ w - x[:, -1]) ** 2))(w)


w, key = jnp.zeros(63), jax.random.key(0)
for _ in range(400):
    key, drawn = jax.random.split(key)
    w = step(w, batch(drawn))
print(float(w.sum()))
