"""Haiku: `hk.transform`, a jitted `apply`, and a jitted update."""

from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import optax


class TrainingState(NamedTuple):
    params: hk.Params
    opt_state: optax.OptState


def net_fn(x: jax.Array) -> jax.Array:
    return hk.nets.MLP([16, 1], activation=jnp.tanh)(x)


network = hk.without_apply_rng(hk.transform(net_fn))
optimiser = optax.adam(1e-2)


def loss_fn(params: hk.Params, x, y):
    return jnp.mean((network.apply(params, x) - y) ** 2)


@jax.jit
def update(state: TrainingState, x, y) -> TrainingState:
    grads = jax.grad(loss_fn)(state.params, x, y)
    updates, opt_state = optimiser.update(grads, state.opt_state)
    return TrainingState(optax.apply_updates(state.params, updates), opt_state)


def main():
    x = jax.random.normal(jax.random.PRNGKey(1), (64, 2))
    y = x[:, :1] * x[:, 1:]
    predict = jax.jit(network.apply)

    params = network.init(jax.random.PRNGKey(0), x)
    state = TrainingState(params, optimiser.init(params))
    before = jnp.mean((predict(params, x) - y) ** 2)
    for _ in range(60):
        state = update(state, x, y)
    after = jnp.mean((predict(state.params, x) - y) ** 2)
    print(f"haiku: before {before:.3f} falls {bool(after < before)}")


if __name__ == "__main__":
    main()
