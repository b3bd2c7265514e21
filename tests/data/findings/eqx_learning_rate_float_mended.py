# Mended: the rate is an array
# applies: fix-asarray-for-equinox
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


@eqx.filter_jit
def make_model(key):
    return eqx.nn.MLP(16, 4, 32, 2, key=key)


@eqx.filter_jit
def step(model, x, lr):
    grads = eqx.filter_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -lr * g, grads))


model = make_model(jax.random.key(0))
x = jnp.ones((8, 16))
lr = 0.1
for i in range(6):
    model = step(model, x, jnp.asarray(lr))
    lr *= 0.9
