# a thrust profile is optimized with central differences of a simulation that JAX could differentiate
import jax
import jax.numpy as jnp

STEPS, PARTS = 400, 40


def fly(thrust, start):
    def step(state, k):
        height, speed, mass = state
        force = thrust[k * PARTS // STEPS]
        speed = speed + 0.05 * (force / mass - 1.0 - 0.02 * speed * jnp.abs(speed))
        return (height + 0.05 * speed, speed, mass - 0.0005 * jnp.abs(force)), height

    (height, speed, mass), _ = jax.lax.scan(step, (start, jnp.zeros_like(start), jnp.ones_like(start)), jnp.arange(STEPS))
    return height, speed, mass


def cost(thrust, starts):
    height, speed, mass = jax.vmap(fly, in_axes=(None, 0))(thrust, starts)
    return jnp.mean((height - 20.0) ** 2 + speed**2 - mass)


def differences(function, x, h=1e-2):
    shifts = h * jnp.eye(len(x))
    above = jax.vmap(lambda d: function(x + d))(shifts)  # must: JX210 first ~ estimates a gradient from 80 evaluations
    below = jax.vmap(lambda d: function(x - d))(shifts)
    return (above - below) / (2 * h)


@jax.jit
def optimize(thrust, starts):
    def descend(thrust, _):
        gradient = differences(lambda x: cost(x, starts), thrust)
        thrust = thrust - 0.02 * gradient / (1e-3 + jnp.linalg.norm(gradient))
        return thrust, cost(thrust, starts)

    return jax.lax.scan(descend, thrust, length=10)


thrust, starts = jnp.ones(PARTS), jnp.linspace(0.0, 5.0, 128)
for _ in range(4):
    thrust, costs = optimize(thrust, starts)
    print(float(costs[-1]))
