# applies: fix-setting-off
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def energy(positions):
    apart = positions[:, None] - positions[None] + jnp.eye(len(positions))[..., None]
    inverse = 1.0 / jnp.sum(apart**2, -1) ** 3
    return jnp.sum(jnp.triu(inverse**2 - inverse, 1))


@jax.jit
def relax(positions, rate):
    return positions - rate * jnp.clip(jax.grad(energy)(positions), -1.0, 1.0)


def main():
    positions = jnp.asarray(np.random.default_rng(0).normal(size=(20, 3)), jnp.float32) * 3
    for i in range(250):
        positions = relax(positions, 0.01)
    print(f"{float(energy(positions)):.4f}")


main()
