"""A simulation draws its grid after every tenth step, and reads each cell separately from the array on the
device.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope

SIZE = 40


@jax.jit
def evolve(grid):
    shifts = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
    neighbors = sum(jnp.roll(grid, shift, (0, 1)) for shift in shifts)
    return ((neighbors == 3) | ((neighbors == 2) & (grid == 1))).astype(grid.dtype)


def drawn(grid):
    lines = []
    for i in range(SIZE):
        lines.append("".join("x" if grid[i, j] == 1 else " " for j in range(SIZE)))  # JX603
    return "\n".join(lines)


def main():
    start = np.zeros((SIZE, SIZE), np.float32)
    start[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1.0
    grid, picture = jnp.asarray(start), ""
    for step in range(30):
        grid = evolve(grid)
        if step % 10 == 9:
            picture = drawn(grid)
        jaxscope.step()
    print(f"{picture.count('x')} cells live")


if __name__ == "__main__":
    main()
