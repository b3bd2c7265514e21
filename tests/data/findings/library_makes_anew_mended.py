# Mended: JAX's persistent cache has the program after the first compilation
# applies: fix-cache-programs
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

jax.config.update("jax_compilation_cache_dir", tempfile.mkdtemp())
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
x = jnp.ones((32, 8))
print(physics_library.expectation_maximization(x, 12))
