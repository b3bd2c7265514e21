# a multigrid solver calls its jitted functions with the arrays of each level: each size is compiled once
import jax
import jax.numpy as jnp


@jax.jit
def smooth(u, f):
    h2 = 1.0 / (len(u) - 1) ** 2
    inside = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + h2 * f[1:-1, 1:-1])
    return u.at[1:-1, 1:-1].set(0.2 * u[1:-1, 1:-1] + 0.8 * inside)


@jax.jit
def restrict(u, f):
    inside = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return (f.at[1:-1, 1:-1].add(inside * (len(u) - 1) ** 2))[::2, ::2]


@jax.jit
def correct(u, e):
    return u + jax.image.resize(e, u.shape, "linear")


def cycle(u, f):
    if len(u) <= 5:
        return smooth(u, f)
    u = smooth(u, f)
    coarse = restrict(u, f)
    u = correct(u, cycle(jax.numpy.zeros_like(coarse), coarse))
    return smooth(u, f)


u, f = jnp.zeros((129, 129)), jnp.ones((129, 129))
for _ in range(8):
    u = cycle(u, f)
print(u.max())
