"""A classifier fine-tuned with optax, compiled five times: once because it has to be, four times for three avoidable causes.

The running loss in the state starts as a Python float, the last batch of an epoch is smaller, and the backbone is
frozen during the first epoch by a static flag.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

BATCH = 64
EPOCHS = 3
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))


class TrainState(NamedTuple):
    params: dict
    opt_state: optax.OptState
    loss: jax.Array  # running mean


def init_params(key, sizes=(20, 32, 4)):
    keys = jax.random.split(key, len(sizes) - 1)
    names = ["backbone"] * (len(sizes) - 2) + ["head"]
    return {
        name: {"kernel": jax.random.normal(k, (m, n)) / np.sqrt(m), "bias": jnp.zeros(n)}
        for name, k, m, n in zip(names, keys, sizes[:-1], sizes[1:], strict=True)
    }


def loss_fn(params, batch):
    hidden = jax.nn.relu(batch["x"] @ params["backbone"]["kernel"] + params["backbone"]["bias"])
    logits = hidden @ params["head"]["kernel"] + params["head"]["bias"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()


@functools.partial(jax.jit, static_argnames="freeze")
def train_step(state, batch, freeze):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, batch)
    if freeze:
        grads["backbone"] = jax.tree.map(jnp.zeros_like, grads["backbone"])
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, opt_state, 0.9 * state.loss + 0.1 * loss)


def batches(x, y, rng):
    order = rng.permutation(len(x))
    for start in range(0, len(x), BATCH):
        rows = order[start : start + BATCH]
        yield {"x": jnp.asarray(x[rows]), "y": jnp.asarray(y[rows])}


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 20)).astype(np.float32)
    y = np.argmax(x[:, :4], axis=1).astype(np.int32)

    params = init_params(jax.random.key(0))
    state = TrainState(params, optimizer.init(params), 0.0)
    for epoch in range(EPOCHS):
        for batch in batches(x, y, rng):
            state = train_step(state, batch, freeze=epoch == 0)
        print(f"epoch {epoch + 1}: running loss {state.loss:.3f}")


if __name__ == "__main__":
    main()
