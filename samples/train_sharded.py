"""A small language model trained on all devices there are: data parallel times model parallel.

    python samples/train_sharded.py                              # on whatever JAX has
    jaxscope run --target v5e:4x4 samples/train_sharded.py       # the same, and what it would become on 16 chips

The text is made up from a seed, so that nothing is downloaded.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

VOCABULARY, WIDTH, LAYERS, LENGTH = 512, 128, 4, 64


def mesh(model):
    devices = np.array(jax.devices())
    model = model if len(devices) % model == 0 else 1
    return Mesh(devices.reshape(-1, model), ("data", "model"))


def initial(key, grid):
    """Parameters, each made where it will live."""
    table = {
        "embed": ((VOCABULARY, WIDTH), P(None, "model")),
        "query": ((LAYERS, WIDTH, WIDTH), P(None, None, "model")),
        "value": ((LAYERS, WIDTH, WIDTH), P(None, None, "model")),
        "up": ((LAYERS, WIDTH, 4 * WIDTH), P(None, None, "model")),
        "down": ((LAYERS, 4 * WIDTH, WIDTH), P(None, "model", None)),
    }

    def make(key):
        keys = dict(zip(table, jax.random.split(key, len(table)), strict=True))
        return {
            name: 0.05 * jax.random.normal(keys[name], shape, jnp.bfloat16)
            for name, (shape, _) in table.items()
        }

    return jax.jit(
        make, out_shardings={name: NamedSharding(grid, spec) for name, (_, spec) in table.items()}
    )(key)


def loss(params, tokens):
    """Mean cross entropy of the next token."""
    x = params["embed"][tokens]
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))

    def layer(x, w):
        scores = jnp.einsum("bqd,bkd->bqk", x @ w["query"], x) / WIDTH**0.5
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf).astype(jnp.float32)).astype(x.dtype)
        x = x + jnp.einsum("bqk,bkd->bqd", weights, x @ w["value"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    x, _ = jax.lax.scan(layer, x, {name: params[name] for name in ("query", "value", "up", "down")})
    logits = (x @ params["embed"].T).astype(jnp.float32)
    likely = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1)
    return -likely.mean()


def train_step(params, tokens):
    value, gradients = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - (0.5 * g).astype(p.dtype), params, gradients), value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=int, default=4, help="devices along the model axis")
    parser.add_argument("--steps", type=int, default=3)
    given = parser.parse_args()
    grid = mesh(given.model)
    params = initial(jax.random.key(0), grid)
    step = jax.jit(
        train_step,
        donate_argnums=0,
        out_shardings=(jax.tree.map(lambda p: p.sharding, params), NamedSharding(grid, P())),
    )
    numbers = np.random.default_rng(0).integers(0, VOCABULARY, (2 * grid.devices.shape[0], LENGTH), "int32")
    tokens = jax.device_put(numbers, NamedSharding(grid, P("data", None)))
    for i in range(given.steps):
        params, value = step(params, tokens)
        print(f"step {i + 1}: loss {float(value):.4f} on {grid.devices.size} devices {dict(grid.shape)}")


if __name__ == "__main__":
    main()
