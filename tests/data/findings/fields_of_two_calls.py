# two lines pass other vector fields to a function that wraps them: each needs its own program
import pathlib
import sys

import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library



def simulate(force, y):
    def field(y):
        return -force(y) - 0.1 * y

    return physics_library.integrate(field, y, 100)


slow = simulate(jnp.tanh, jnp.ones(4))
fast = simulate(lambda y: y**3 + jnp.sin(y) * y, jnp.ones(4))
print(slow.sum(), fast.sum())
