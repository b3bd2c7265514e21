"""One of two processes compiles another constant into its step: both end with exit code 0, but with wrong
numbers.
"""

# jaxscope launch -n 2 bad.py

import jax

jax.distributed.initialize()

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

mesh = jax.make_mesh((jax.device_count(),), ("data",))
BY_ROWS = NamedSharding(mesh, PartitionSpec("data"))
scale = 2.0 if jax.process_index() == 1 else 1.0


@jax.jit
def step(x):
    return jnp.sum(x * scale)  # JX850


def main():
    whole = np.ones(8 * jax.process_count(), "float32")
    x = jax.make_array_from_callback(whole.shape, BY_ROWS, lambda index: whole[index])
    print("sum", step(x).addressable_data(0))


if __name__ == "__main__":
    main()
