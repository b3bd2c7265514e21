# a network that solves a differential equation: all points of all iterations are drawn from one key
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
    t = random.uniform(points, (256,))  # must: JX135 first ~ lines 38, 39 and 40
    x = random.uniform(points, (256,), minval=-1.0)
    start = random.uniform(points, (64,), minval=-1.0)
    params, state, value = step(params, state, t, x, start)
print(value)
