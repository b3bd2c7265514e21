"""The devices average the loss, but not the gradients: each device trains its own model, and only one of
these models is kept.
"""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def loss_of(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


@jax.jit
@functools.partial(
    jax.shard_map, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False
)
def train_step(w, x, y):
    loss, slope = jax.value_and_grad(loss_of)(w, x, y)
    return w - 0.1 * slope, jax.lax.pmean(loss, "data")


def main():
    x = jax.random.normal(jax.random.key(0), (256, 8))
    y = x.sum(1) + jnp.arange(256) / 64  # the parts of the data differ
    x, y = jax.device_put((x, y), NamedSharding(mesh, P("data")))
    w = jax.device_put(jnp.zeros(8), NamedSharding(mesh, P()))
    for _ in range(20):
        w, loss = train_step(w, x, y)  # JX138
    print(f"loss {float(loss):.3f}, sum of the weights {float(w.sum()):.3f}")


if __name__ == "__main__":
    main()
