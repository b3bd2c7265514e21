# Particles between walls: masks select those that are outside, another number of them in each step
import jax
import jax.numpy as jnp

positions = jax.random.uniform(jax.random.key(0), (2000, 2))
velocity = jnp.ones((2000, 2)) * 0.01


def bounce(positions, velocity):
    outside = positions > 1.0
    velocity = velocity.at[outside].set(-velocity[outside])  # must: JX133 first ~ where\(outside, -velocity, velocity\)
    return jnp.minimum(positions, 1.0), velocity


for i in range(60):
    positions, velocity = bounce(positions + velocity, velocity)
print(positions.sum(), velocity.sum())
