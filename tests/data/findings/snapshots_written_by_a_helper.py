# a helper writes each state into one large array outside jit; the loop is in another function, and the copies show nowhere
import jax
import jax.numpy as jnp

CELLS, STEPS = 2000, 1500


def flux(u):
    return 0.5 * u**2


@jax.jit
def step(u):
    return u - 0.05 * (flux(u) - flux(jnp.roll(u, 1)))


def keep(snapshots, u, n):
    if n % 5 == 0:
        snapshots = snapshots.at[:, n // 5].set(u)  # must: JX607 first ~ copies the whole array
    return snapshots


u = 1.0 + 0.3 * jnp.sin(jnp.linspace(0.0, 6.28, CELLS))
snapshots = keep(jnp.zeros((CELLS, 4 * STEPS // 5)), u, 0)
n = 0
while n < STEPS:
    u = step(u)
    n += 1
    snapshots = keep(snapshots, u, n)
print(f"{float(snapshots.std()):.4f}")
