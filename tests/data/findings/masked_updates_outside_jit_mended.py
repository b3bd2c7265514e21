# Mended: jnp.where computes all particles
# applies: fix-where-for-mask
import jax
import jax.numpy as jnp

positions = jax.random.uniform(jax.random.key(0), (2000, 2))
velocity = jnp.ones((2000, 2)) * 0.01


def bounce(positions, velocity):
    outside = positions > 1.0
    velocity = jnp.where(outside, -velocity, velocity)
    return jnp.minimum(positions, 1.0), velocity


for i in range(60):
    positions, velocity = bounce(positions + velocity, velocity)
print(positions.sum(), velocity.sum())
