# Mended: several prints in one function, and in one loop body: each function is one finding, with its lines
# applies: fix-show-outside
import jax
import jax.numpy as jnp


@jax.jit
def step(w):
    w = jax.lax.fori_loop(0, 2, lambda _, w: w * 0.9, w)
    return w, jnp.linalg.norm(w)


w, norm = step(jnp.ones(8))
print(w.sum(), norm)
