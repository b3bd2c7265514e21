"""An orbit is computed in float32, with a tolerance that is too small for float32: most steps of the solver
are useless.
"""

import jax
import jax.numpy as jnp
from jax.experimental.ode import odeint


@jax.jit
def orbit(start, times):
    def change(y, t):
        position, velocity = y
        return velocity, -position / jnp.sum(position**2) ** 1.5

    return odeint(change, start, times, rtol=1e-9, atol=1e-9)  # JX305


def main():
    start = (jnp.array([1.0, 0.0]), jnp.array([0.0, 0.9]))
    positions, _ = orbit(start, jnp.linspace(0.0, 4.0, 20))
    print(f"at the end {positions[-1]}")


if __name__ == "__main__":
    main()
