# Mended: the loop carries one grid, to which all rays add in each step
# applies: fix-one-array-for-all
import jax
import jax.numpy as jnp

N, RAYS = 32, 256


@jax.jit
def deposited(emission, directions, steps):
    def move(_, state):
        positions, grid = state
        cells = tuple(jnp.clip(positions.astype(int), 0, N - 1).T)
        return positions + 0.5 * directions, grid.at[cells].add(emission[cells])

    return jax.lax.fori_loop(0, steps, move, (jnp.full((RAYS, 3), N / 2), jnp.zeros_like(emission)))[1]


directions = jax.random.normal(jax.random.key(0), (RAYS, 3))
emission, total = jnp.ones((N, N, N)), 0.0
for call in range(40):
    emission = 1 + 0.01 * deposited(emission, directions, 4 + call % 3)
print(float(emission.sum()))
