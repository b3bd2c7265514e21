# a library creates the function of a step again in each step of one call
# never: before the loop
import pathlib
import sys

import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

x = jnp.ones((32, 8))
print(physics_library.expectation_maximization(x, 12))  # must: JX133 first ~ jax_compilation_cache_dir
