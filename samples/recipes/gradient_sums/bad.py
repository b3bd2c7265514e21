"""The gradient of each of 8 small batches is averaged over the devices, although one average after the loop
would be enough.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w) - 1) ** 2)


def gradients(w, batches):
    def add(total, x):
        gradient = jax.grad(loss)(w, x)
        return total + jax.lax.pmean(gradient, "data"), None  # JX403

    total, _ = jax.lax.scan(add, jnp.zeros_like(w), batches)
    return total / len(batches)


averaged = jax.shard_map(
    gradients, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False
)


@jax.jit
def train_step(w, batches):
    return w - 0.1 * averaged(w, batches)


def main():
    w = jax.device_put(np.full((256, 128), 0.01, "f4"), NamedSharding(mesh, P()))
    batches = np.random.default_rng(0).normal(size=(8, 32, 256)).astype("f4")
    for _ in range(4):
        w = train_step(w, batches)
    print(f"mean {w.mean():.4f}")


if __name__ == "__main__":
    main()
