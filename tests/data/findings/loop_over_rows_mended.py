# Mended: the function is jitted
# applies: fix-jit-around-body
# may: JX202
import jax
import jax.numpy as jnp


@jax.jit
def total(xs):
    s = 0.0
    for row in xs:
        s = s + jax.lax.fori_loop(0, 3, lambda i, a: a + row.sum(), 0.0)
    return s


for i in range(6):
    print(total(jnp.ones((12, 4))))
