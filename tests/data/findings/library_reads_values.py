# a library reads the loss in each of its steps: jit cannot trace it, and no change of the call helps
import pathlib
import sys

import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

w, losses = physics_library.fit(jax.random.key(0), jnp.ones((32, 8)), 40)
print(w.shape, losses[-1])
