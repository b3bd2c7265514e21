# Heat in a rod, step by step: the matrices of the step have three diagonals
import jax
import jax.numpy as jnp

POINTS, STEPS = 1200, 60


@jax.jit
def simulate(temperature, conductivity):
    rate = conductivity * 0.5 * (POINTS - 1)
    beside = jnp.full(POINTS - 1, rate)
    laplacian = jnp.diag(beside, -1) - 2 * jnp.diag(jnp.full(POINTS, rate)) + jnp.diag(beside, 1)
    identity = jnp.eye(POINTS)
    explicit, implicit = identity + laplacian, identity - laplacian

    def step(temperature, _):
        right = explicit @ temperature  # must: JX211 ~ a few diagonals
        temperature = jnp.linalg.solve(implicit, right)  # must: JX211 ~ tridiagonal_solve
        return temperature, temperature[POINTS // 2]

    return jax.lax.scan(step, temperature, None, length=STEPS)


temperature = jnp.exp(-(jnp.linspace(-4.0, 4.0, POINTS) ** 2))
for conductivity in (0.001, 0.002, 0.004):
    final, middle = simulate(temperature, conductivity)
    print(float(final.max()), float(middle[-1]))
