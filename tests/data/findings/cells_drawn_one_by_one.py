# a simulation draws its grid in a helper function that compares one cell after the other
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(grid):
    neighbours = sum(jnp.roll(grid, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)) - grid
    return ((neighbours == 3) | ((neighbours == 2) & (grid == 1))).astype(grid.dtype)


def cell(x):
    return "x" if x == 1.0 else " "  # must: JX603 ~ device_get


def draw(grid):
    cells = grid.reshape(-1)
    return "\n".join("".join(cell(cells[i * 20 + j]) for j in range(20)) for i in range(20))


grid = jnp.asarray(np.random.default_rng(0).integers(0, 2, (20, 20)).astype("float32"))
for _ in range(5):
    grid = step(grid)
    text = draw(grid)
print(text.count("x"))
