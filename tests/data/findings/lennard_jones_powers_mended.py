# Mended: the exponents are integers
# applies: fix-integer-exponent
import functools

import jax
import jax.numpy as jnp
import numpy as np

BOX = 11.0


def energy(positions, sigma=0.9, epsilon=1.0):
    apart = positions[:, None, :] - positions[None, :, :]
    apart = apart - BOX * jnp.round(apart / BOX)
    squared = (apart**2).sum(-1) + jnp.eye(len(positions))
    ratio = sigma**2 / squared
    pairs = 4 * epsilon * (ratio**6 - ratio**3)
    return jnp.sum(pairs * (1 - jnp.eye(len(positions)))) / 2


@functools.partial(jax.jit, donate_argnums=0)
def move(positions):
    return positions - 1e-4 * jnp.clip(jax.grad(energy)(positions), -10, 10)


grid = np.stack(np.meshgrid(*[np.arange(11.0)] * 3), -1).reshape(-1, 3)
positions = jnp.asarray(grid + np.random.default_rng(0).normal(0, 0.05, grid.shape), jnp.float32)
for _ in range(40):
    positions = move(positions)
print(f"{jax.jit(energy)(positions):.2f}")
