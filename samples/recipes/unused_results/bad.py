"""A scan returns the whole state of all its steps, but the program only reads the energies."""

import jax
import jax.numpy as jnp


@jax.jit
def simulate(x, v):
    def body(state, _):
        x, v = state
        v = v - 0.01 * x
        x = x + 0.01 * v
        return (x, v), {"x": x, "v": v, "energy": jnp.mean(x**2 + v**2)}

    return jax.lax.scan(body, (x, v), length=500)


def main():
    x, v = jnp.ones(40_000), jnp.zeros(40_000)
    (x, v), record = simulate(x, v)  # JX514
    print(f"mean {x.mean():.3f}, energy {record['energy'][-1]:.3f}")


if __name__ == "__main__":
    main()
