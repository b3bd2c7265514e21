# Mended: a function of the module
# applies: fix-one-function
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class Model(eqx.Module):
    weight: jax.Array
    activation: Callable

    def __call__(self, x):
        return self.activation(self.weight @ x)


@eqx.filter_jit
def loss(model, x):
    return (jax.vmap(model)(x) ** 2).mean()


def make_model(seed):
    weight = np.random.default_rng(seed).normal(size=(4, 8)).astype("float32")
    return Model(jnp.asarray(weight), jax.nn.silu)


x = jnp.ones((32, 8))
for seed in range(4):
    print(loss(make_model(seed), x))
