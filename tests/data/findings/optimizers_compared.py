# a step that a factory makes for each optimizer: other static values, so each is a program of its own
# never: defined again|defined it again
import functools

import jax
import jax.numpy as jnp
import optax


def make_step(optimizer):
    @functools.partial(jax.jit, static_argnames="steps")
    def step(w, state, x, steps):
        for _ in range(steps):
            updates, state = optimizer.update(jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w), state, w)
            w = optax.apply_updates(w, updates)
        return w, state

    return step


for optimizer, steps in ((optax.sgd(0.1), 1), (optax.adam(0.1), 2), (optax.sgd(0.1, momentum=0.9), 3)):
    w = jnp.ones((16, 4))
    state = optimizer.init(w)
    step = make_step(optimizer)
    for _ in range(3):
        w, state = step(w, state, jnp.ones((8, 16)), steps)
