# Mended: three diagonals instead of the matrices
# applies: fix-tridiagonal-solve, fix-add-diagonals
import jax
import jax.numpy as jnp

POINTS, STEPS = 1200, 60


@jax.jit
def simulate(temperature, conductivity):
    rate = conductivity * 0.5 * (POINTS - 1)
    beside = jnp.full(POINTS, -rate)
    main = jnp.full(POINTS, 1 + 2 * rate)

    def step(temperature, _):
        right = (1 - 2 * rate) * temperature
        right = right.at[1:].add(rate * temperature[:-1])
        right = right.at[:-1].add(rate * temperature[1:])
        lower, upper = beside.at[0].set(0.0), beside.at[-1].set(0.0)
        temperature = jax.lax.linalg.tridiagonal_solve(lower, main, upper, right[:, None])[:, 0]
        return temperature, temperature[POINTS // 2]

    return jax.lax.scan(step, temperature, None, length=STEPS)


temperature = jnp.exp(-(jnp.linspace(-4.0, 4.0, POINTS) ** 2))
for conductivity in (0.001, 0.002, 0.004):
    final, middle = simulate(temperature, conductivity)
    print(float(final.max()), float(middle[-1]))
