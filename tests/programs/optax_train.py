"""Plain JAX with optax: a `NamedTuple` train state, a chain of transforms, donated arguments."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class TrainState(NamedTuple):
    params: Any
    opt_state: Any
    step: jax.Array


optimizer = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.adamw(optax.schedules.cosine_decay_schedule(3e-2, decay_steps=60)),
)


def init_state(key):
    k1, k2 = jax.random.split(key)
    params = {
        "hidden": {"w": jax.random.normal(k1, (2, 16)), "b": jnp.zeros(16)},
        "out": {"w": jax.random.normal(k2, (16, 1)) / 4, "b": jnp.zeros(1)},
    }
    return TrainState(params, optimizer.init(params), jnp.zeros((), jnp.int32))


def loss_fn(params, batch):
    hidden = jnp.tanh(batch["x"] @ params["hidden"]["w"] + params["hidden"]["b"])
    pred = hidden @ params["out"]["w"] + params["out"]["b"]
    return optax.losses.squared_error(pred, batch["y"]).mean()


@partial(jax.jit, donate_argnums=0)
def train_step(state, batch):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, batch)
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, opt_state, state.step + 1), {"loss": loss, "grad_norm": optax.tree.norm(grads)}


def main():
    init_key, data_key = jax.random.split(jax.random.key(0))
    state = init_state(init_key)
    x = jax.random.normal(data_key, (64, 2))
    batch = {"x": x, "y": x[:, :1] * x[:, 1:]}
    losses = []
    for _ in range(60):
        state, metrics = train_step(state, batch)
        losses.append(metrics["loss"])
    print(f"optax: step {state.step} first {losses[0]:.3f} falls {bool(losses[-1] < losses[0])}")


if __name__ == "__main__":
    main()
