# Mended: the field is a module, whose rate is an argument of the compiled program
# applies: fix-make-object-once
import pathlib
import sys

import equinox as eqx
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library


class Field(eqx.Module):
    rate: object

    def __call__(self, y):
        return -self.rate * jnp.tanh(y)


def simulate(field, y):
    return physics_library.integrate(field, y, 100)


slow = simulate(Field(jnp.float32(0.5)), jnp.ones(4))
fast = simulate(Field(jnp.float32(2.0)), jnp.ones(4))
print(slow.sum(), fast.sum())
