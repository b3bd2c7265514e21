"""The parameters are replicated on 4 devices, and the batches of the evaluation, too: each device computes
everything.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
REPLICATED, SPLIT = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))


@jax.jit
def accuracy(w, images, labels):
    return jnp.mean(jnp.argmax(images @ w, axis=1) == labels)


def main():
    rng = np.random.default_rng(0)
    w = jax.device_put(rng.normal(size=(256, 10)).astype("f4"), REPLICATED)  # replicated for the training
    right = []
    for _ in range(4):
        images, labels = rng.normal(size=(512, 256)).astype("f4"), rng.integers(0, 10, 512)
        right.append(accuracy(w, images, labels))  # JX512
    print(f"accuracy {np.mean(jax.device_get(right)):.3f}")


if __name__ == "__main__":
    main()
