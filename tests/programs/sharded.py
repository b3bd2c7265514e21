"""Data and tensor parallelism on a 4x2 mesh of eight forced CPU devices, with donation."""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
param_shardings = {
    "up": NamedSharding(mesh, P(None, "model")),
    "down": NamedSharding(mesh, P("model", None)),
}
batch_sharding = NamedSharding(mesh, P("data", None))
replicated = NamedSharding(mesh, P())


def loss_fn(params, x):
    hidden = jax.nn.relu(x @ params["up"])
    return jnp.mean((hidden @ params["down"] - x) ** 2)


@partial(
    jax.jit,
    in_shardings=(param_shardings, batch_sharding),
    out_shardings=(param_shardings, replicated),
    donate_argnums=0,
)
def train_step(params, x):
    loss, grads = jax.value_and_grad(loss_fn)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "up": jax.random.normal(keys[0], (16, 32)) / 4,
        "down": jax.random.normal(keys[1], (32, 16)) / 6,
    }
    params = jax.device_put(params, param_shardings)
    x = jax.device_put(jax.random.normal(keys[2], (64, 16)), batch_sharding)
    losses = []
    for _ in range(5):
        params, loss = train_step(params, x)
        losses.append(float(loss))
    print(
        f"sharded: {jax.device_count()} devices, falls {losses[-1] < losses[0]}, up {params['up'].sharding.spec}"
    )


if __name__ == "__main__":
    main()
