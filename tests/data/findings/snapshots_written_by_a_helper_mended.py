# Mended: the write is jitted, and donates the array
# applies: fix-write-in-jit
from functools import partial

import jax
import jax.numpy as jnp

CELLS, STEPS = 2000, 1500


def flux(u):
    return 0.5 * u**2


@jax.jit
def step(u):
    return u - 0.05 * (flux(u) - flux(jnp.roll(u, 1)))


@partial(jax.jit, donate_argnums=0)
def write(snapshots, u, n):
    return snapshots.at[:, n].set(u)


def keep(snapshots, u, n):
    return write(snapshots, u, n // 5) if n % 5 == 0 else snapshots


u = 1.0 + 0.3 * jnp.sin(jnp.linspace(0.0, 6.28, CELLS))
snapshots = keep(jnp.zeros((CELLS, 4 * STEPS // 5)), u, 0)
n = 0
while n < STEPS:
    u = step(u)
    n += 1
    snapshots = keep(snapshots, u, n)
print(f"{float(snapshots.std()):.4f}")
