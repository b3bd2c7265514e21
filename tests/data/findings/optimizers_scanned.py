"""The same scan with the steps of other optimizers: each needs its own program, which jit would not save."""
# never: made anew|new function object

import functools

import jax
import jax.numpy as jnp
import optax


def update(optimizer, state, _):
    params, opt_state = state
    grads = jax.grad(lambda p: p[0] * p[1])(params)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return (optax.apply_updates(params, updates), opt_state), params


def optimize(optimizer, params):
    return jax.lax.scan(functools.partial(update, optimizer), (params, optimizer.init(params)), length=100)


start = jnp.array([1.0, 1.0])
for optimizer in (optax.sgd(0.1), optax.optimistic_gradient_descent(0.1), optax.adam(0.05), optax.lion(0.05)):
    (last, _), _ = optimize(optimizer, start)
    print(last)
