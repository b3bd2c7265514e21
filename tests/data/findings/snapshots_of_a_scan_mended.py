# applies: fix-stack-what-is-read
import jax
import jax.numpy as jnp

EVERY = 60


def laplacian(u):
    return sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u


@jax.jit
def evolve(u, v):
    def step(_, state):
        u, v = state
        reaction = u * v**2
        u = u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u)
        v = v + 0.08 * laplacian(v) + reaction - 0.1 * v
        return u, v

    def block(state, _):
        state = jax.lax.fori_loop(0, EVERY, step, state)
        return state, state[1]

    (u, v), snapshots = jax.lax.scan(block, (u, v), length=480 // EVERY)
    return u, v, snapshots


u = jnp.ones((128, 128))
v = jnp.zeros((128, 128)).at[60:68, 60:68].set(0.5)
for _ in range(3):
    u, v, snapshots = evolve(u, v)
    print(float(v.sum()), snapshots.shape)
