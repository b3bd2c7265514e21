# a Python loop over the rows of an array, with a loop of JAX's for each
import jax
import jax.numpy as jnp


def total(xs):
    s = 0.0
    for row in xs:
        s = s + jax.lax.fori_loop(0, 3, lambda i, a: a + row.sum(), 0.0)  # must: JX133 first ~ apply jit to total
    return s


for i in range(6):
    print(total(jnp.ones((12, 4))))
