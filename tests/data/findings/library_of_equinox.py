# a library creates an Equinox module, operation by operation: jax.jit cannot return its function
import pathlib
import sys

import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

key = jax.random.key(0)
flow = physics_library.make_flow(key=key, size=8)  # must: JX133 first ~ equinox.filter_jit\(physics
print(physics_library.log_density(flow, jnp.ones(8)))
