"""The same as jit over a mesh: the parameters are one array, the batch is placed as rows, and XLA adds
the all-reduce.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@partial(jax.jit, donate_argnames="w")
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w = jax.device_put(np.ones((512, 64), "float32"), NamedSharding(mesh, P()))
    for _ in range(6):
        batch = jax.device_put(np.ones((8 * 256, 512), "float32"), NamedSharding(mesh, P("data")))
        w = train_step(w, batch)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
