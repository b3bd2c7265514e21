# a cellular automaton without gradients: its number of steps is static, and JAX unrolls the loop each time
# never: JX202
import jax
import jax.numpy as jnp
from functools import partial


@partial(jax.jit, static_argnames="steps")
def life(cells, steps):
    for _ in range(steps):
        around = sum(
            jnp.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        cells = jnp.where(cells, (around == 2) | (around == 3), around == 3).astype(cells.dtype)
    return cells


cells = jax.random.bernoulli(jax.random.key(0), 0.3, (64, 64)).astype(jnp.int32)
for steps in (4, 8, 12, 16, 20, 24):
    print(steps, int(life(cells, steps).sum()))  # must: JX107 first ~ jax\.lax\.fori_loop\(0, steps, \.\.\.\), and remove steps from static
