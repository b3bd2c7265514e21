"""One process has a batch that cannot be read, and ends; the other process continues without it."""

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


def load(step):
    if step == 3 and jax.process_index() == 1:
        raise OSError("the file of batch 3 is not complete")  # JX853
    return rows(2)


def main():
    w = rows(1)
    for step in range(5):
        w = train_step(w, load(step))
    print("w", w.addressable_data(0))


if __name__ == "__main__":
    main()
