# two lines call a function that defines the vector field of a simulation: the field is compiled for each
# never: compilation_cache
import pathlib
import sys

import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library



def simulate(rate, y):
    def field(y):
        return -rate * jnp.tanh(y)

    return physics_library.integrate(field, y, 100)  # must: JX133 first ~ once


slow = simulate(jnp.float32(0.5), jnp.ones(4))
fast = simulate(jnp.float32(2.0), jnp.ones(4))
print(slow.sum(), fast.sum())
