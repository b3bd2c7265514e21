# Mended: each iteration makes a key for each of its draws
# applies: fix-keys-of-iteration
import jax
import jax.numpy as jnp
import optax
from jax import random


def network(params, t, x):
    hidden = jnp.tanh(params["t"] * t + params["x"] * x + params["b"])
    return hidden @ params["out"]


def residual(params, t, x):
    slope = jax.grad(network, 1)(params, t, x)
    bend = jax.grad(jax.grad(network, 2), 2)(params, t, x)
    return slope - 0.1 * bend


@jax.jit
def step(params, state, t, x, start):
    def loss(params):
        inside = jax.vmap(residual, (None, 0, 0))(params, t, x)
        first = jax.vmap(network, (None, None, 0))(params, 0.0, start) - jnp.sin(jnp.pi * start)
        return jnp.mean(inside**2) + jnp.mean(first**2)

    value, gradients = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, value


key = random.key(0)
names = ("t", "x", "b", "out")
params = {name: random.normal(k, (32,)) for name, k in zip(names, random.split(key, 4), strict=True)}
optimizer = optax.adam(1e-3)
state = optimizer.init(params)
points = random.fold_in(key, 1)
for i in range(200):
    key1, key2, key3 = random.split(random.fold_in(points, i), 3)
    t = random.uniform(key1, (256,))
    x = random.uniform(key2, (256,), minval=-1.0)
    start = random.uniform(key3, (64,), minval=-1.0)
    params, state, value = step(params, state, t, x, start)
print(value)
