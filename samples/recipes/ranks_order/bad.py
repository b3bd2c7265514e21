"""Two processes call the same programs in different orders: they iterate over a set of names, whose order
differs between processes.
"""

# jaxscope launch -n 2 bad.py

import jax

jax.distributed.initialize()

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

mesh = jax.make_mesh((jax.device_count(),), ("data",))
BY_ROWS = NamedSharding(mesh, PartitionSpec("data"))


def rows(value):
    whole = np.full(8 * jax.process_count(), value, "float32")
    return jax.make_array_from_callback(whole.shape, BY_ROWS, lambda index: whole[index])


@jax.jit
def square(x):
    return x**2


@jax.jit
def size(x):
    return jnp.abs(x)


METRICS = {"square": square, "size": size}


def main():
    x = rows(2)
    names = list(METRICS) if jax.process_index() == 0 else list(reversed(METRICS))  # as a set does it
    for name in names:
        print(name, METRICS[name](x).addressable_data(0))  # JX852


if __name__ == "__main__":
    main()
