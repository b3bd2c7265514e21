# a scan stacks the field of every step, and the function keeps every 60th of them
import jax
import jax.numpy as jnp

EVERY = 60


def laplacian(u):
    return sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u


@jax.jit
def evolve(u, v):
    def step(state, _):
        u, v = state
        reaction = u * v**2
        u = u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u)
        v = v + 0.08 * laplacian(v) + reaction - 0.1 * v
        return (u, v), v

    (u, v), fields = jax.lax.scan(step, (u, v), length=480)  # must: JX514 first ~ evolve
    return u, v, fields[EVERY - 1 :: EVERY]


u = jnp.ones((128, 128))
v = jnp.zeros((128, 128)).at[60:68, 60:68].set(0.5)
for _ in range(3):
    u, v, snapshots = evolve(u, v)
    print(float(v.sum()), snapshots.shape)
