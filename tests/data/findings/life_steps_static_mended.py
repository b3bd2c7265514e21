# Mended: a fori_loop, of which one program runs any number of steps
# applies: fix-static-count, fix-ordinary-argument
import jax
import jax.numpy as jnp


@jax.jit
def life(cells, steps):
    def step(_, cells):
        around = sum(
            jnp.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        return jnp.where(cells, (around == 2) | (around == 3), around == 3).astype(cells.dtype)

    return jax.lax.fori_loop(0, steps, step, cells)


cells = jax.random.bernoulli(jax.random.key(0), 0.3, (64, 64)).astype(jnp.int32)
for steps in (4, 8, 12, 16, 20, 24):
    print(steps, int(life(cells, steps).sum()))
