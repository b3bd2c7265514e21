"""Imported by `many_kinds.py`: compiles a function while it is being imported."""

import jax
import jax.numpy as jnp


@jax.jit
def at_import(x):
    return x * 2 + 1


TABLE = at_import(jnp.arange(4.0))
