"""A constant key, a state that starts on one device, and a print in each step: three mistakes in the
training of good.py.
"""

import tempfile
from collections import deque
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
EVERYWHERE, BY_ROWS = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
DIGITS = np.load(Path(__file__).parents[2] / "digits.npz")
BATCH, WIDTH, EPOCHS = 256, 64, 3
KEY = jax.random.key(1)
optimizer = optax.adamw(1e-3)


class Model(nnx.Module):
    """Compute in bfloat16; the parameters are float32."""

    def __init__(self, rngs):
        half = partial(nnx.Linear, dtype=jnp.bfloat16, rngs=rngs)
        self.first, self.middle, self.last = half(64, WIDTH), half(WIDTH, WIDTH), half(WIDTH, 10)

    def __call__(self, images, kept):
        hidden = nnx.relu(self.first(images)) * kept
        return self.last(hidden + nnx.relu(self.middle(hidden)))


graph = nnx.graphdef(nnx.eval_shape(lambda: Model(nnx.Rngs(0))))


@jax.jit
def initial(key):
    params = nnx.state(Model(nnx.Rngs(key)))
    return {"params": params, "moments": optimizer.init(params), "step": jnp.int32(0)}


@partial(jax.jit, donate_argnames="state", out_shardings=EVERYWHERE)
def train_step(state, images, labels):
    kept = jax.random.bernoulli(KEY, 0.9, (len(images), WIDTH))

    @jax.checkpoint
    def scores(params, images):
        return nnx.merge(graph, params)(images, kept.astype(jnp.bfloat16)).astype(jnp.float32)

    def loss(params):
        found = scores(params, images)
        right = (found.argmax(axis=1) == labels).mean()
        return optax.softmax_cross_entropy_with_integer_labels(found, labels).mean(), right

    (value, right), gradients = jax.value_and_grad(loss, has_aux=True)(state["params"])
    jax.debug.print("loss {}", value)  # JX301
    updates, moments = optimizer.update(gradients, state["moments"], state["params"])
    params = optax.apply_updates(state["params"], updates)
    return {"params": params, "moments": moments, "step": state["step"] + 1}, {"loss": value, "right": right}


def batches(rng):
    images = (DIGITS["images"].reshape(-1, 64) / 16).astype("float32")
    order = rng.permutation(len(images))
    for at in range(0, len(order) - BATCH + 1, BATCH):  # the rest comes in another epoch
        chosen = order[at : at + BATCH]
        yield images[chosen], DIGITS["labels"][chosen].astype("int32")


def prefetched(batches, ahead=2):
    ready = deque()
    for batch in batches:
        ready.append(jax.device_put(batch, BY_ROWS))
        if len(ready) > ahead:
            yield ready.popleft()
    yield from ready


def main():
    rng = np.random.default_rng(0)
    state = initial(jax.random.key(0))
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        for epoch in range(EPOCHS):
            for images, labels in prefetched(batches(rng)):
                state, metrics = train_step(state, images, labels)  # JX120 JX125 JX134
            print(f"epoch {epoch}: loss {metrics['loss']:.3f}, right {metrics['right']:.0%}")
        checkpointer.save(Path(folder) / "state", state)


if __name__ == "__main__":
    main()
