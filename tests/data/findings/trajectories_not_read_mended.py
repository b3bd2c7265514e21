# Mended: the scan only returns the energies, and the last positions are what it carries
# applies: fix-return-what-is-read
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Record(NamedTuple):
    energy: jax.Array


def energy(x):
    d = x - jnp.roll(x, 1, axis=0)
    return jnp.sum((jnp.sum(d**2, axis=-1) - 1.0) ** 2)


@partial(jax.jit, static_argnums=2)
def relax(x, rate, steps):
    def step(x, _):
        forces = -jax.vmap(jax.grad(energy))(x)
        x = x + rate * forces
        return x, Record(jax.vmap(energy)(x).mean())

    return jax.lax.scan(step, x, length=steps)


@jax.jit
def size(x):
    return jnp.sqrt(jnp.mean(jnp.sum((x - x.mean(1, keepdims=True)) ** 2, -1)))


x = jax.jit(lambda key: jax.random.normal(key, (64, 128, 3)))(jax.random.key(0))
for block in range(3):
    x, record = relax(x, 1e-3, 300)
    print(block, float(record.energy[-1]), float(size(x)))
