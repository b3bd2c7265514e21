# Mended: filter_jit creates it
# applies: fix-jit-method
import pathlib
import sys

import equinox as eqx
import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

flow = eqx.filter_jit(physics_library.make_flow)(key=jax.random.key(0), size=8)
print(physics_library.log_density(flow, jnp.ones(8)))
