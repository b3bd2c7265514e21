# a step from a factory for each optimizer, with a step count that begins as a Python int: nothing to change
# never: fast path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class Store(NamedTuple):
    params: Any
    state: Any
    step: int = 0


def loss(params):
    return jnp.sum(params**2)


def make_step(optimizer):
    @jax.jit
    def step(store):
        updates, state = optimizer.update(jax.grad(loss)(store.params), store.state, store.params)
        params = optax.apply_updates(store.params, updates)
        return store._replace(params=params, state=state, step=store.step + 1)

    return step


params = jnp.ones(4)
for optimizer in (optax.sgd(0.1), optax.adam(0.1), optax.sgd(0.1, momentum=0.9), optax.rmsprop(0.1)):
    store, step = Store(params, optimizer.init(params)), make_step(optimizer)
    for _ in range(10):
        store = step(store)
    print(store.params.sum())
