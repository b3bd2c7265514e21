# rays deposit energy on a grid: vmap gives each ray a grid of its own, and the grids are added up
import jax
import jax.numpy as jnp

N, RAYS = 32, 256


@jax.jit
def deposited(emission, directions, steps):
    def ray(direction):
        def move(_, state):
            position, grid = state
            cell = tuple(jnp.clip(position.astype(int), 0, N - 1))
            return position + 0.5 * direction, grid.at[cell].add(emission[cell])

        return jax.lax.fori_loop(0, steps, move, (jnp.full(3, N / 2), jnp.zeros_like(emission)))[1]

    return jax.vmap(ray)(directions).sum(0)  # must: JX211 first ~ makes a whole array for each element of a vmap


directions = jax.random.normal(jax.random.key(0), (RAYS, 3))
emission, total = jnp.ones((N, N, N)), 0.0
for call in range(40):
    emission = 1 + 0.01 * deposited(emission, directions, 4 + call % 3)
print(float(emission.sum()))
