"""Only the first process evaluates, but with arrays of both processes: its program waits for the other process."""

# jaxscope launch -n 2 bad.py

import jax

jax.distributed.initialize()

import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

mesh = jax.make_mesh((jax.device_count(),), ("data",))
BY_ROWS = NamedSharding(mesh, PartitionSpec("data"))


def rows(value):
    whole = np.full(8 * jax.process_count(), value, "float32")
    return jax.make_array_from_callback(whole.shape, BY_ROWS, lambda index: whole[index])


@jax.jit
def train_step(w, x):
    return w - 0.1 * x * w


@jax.jit
def errors(w, x):
    return (w * x) ** 2


def main():
    w, x = rows(1), rows(2)
    for _ in range(3):
        w = train_step(w, x)
    if jax.process_index() == 0:
        print("errors", errors(w, x).addressable_data(0))  # JX851


if __name__ == "__main__":
    main()
