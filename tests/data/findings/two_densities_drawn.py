# two functions are drawn in turn, each from a line of its own: a program for each, nothing to change
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnums=(0, 1))
def on_grid(density, ticks, params):
    x = jnp.linspace(-2.0, 2.0, ticks)
    points = jnp.stack(jnp.meshgrid(x, x), axis=-1).reshape(-1, 2)
    return jax.vmap(density, in_axes=(0, None))(points, params)


def target(x, _):
    return jnp.exp(-0.5 * (x**2).sum())


def approximation(x, params):
    return jnp.exp(-((x - params) ** 2).sum())


def draw(params):
    z = on_grid(target, 21, 1)
    z2 = on_grid(approximation, 21, params)
    return z, z2


params = jax.jit(lambda: jnp.zeros(2))()
for _ in range(3):
    z, z2 = draw(params)
print(z.shape, z2.shape)
