"""A digit classifier trained by many processes, each with a part of the data:

    jaxscope launch -n 8 samples/train_many_processes.py             # 8 processes on this machine
    srun jaxscope run samples/train_many_processes.py                # on a cluster: samples/jobs

With ``--lost`` the part of process 5 has lost some examples, and the program divides by their number, a constant: process
5 compiles another program than the others. Without jaxscope all print the same wrong loss and end with exit code 0.
"""

import argparse
import os
from pathlib import Path

import jax

# Before anything else of JAX. Under srun and mpirun it finds the number of processes and its own by itself; in a pod the
# manifest sets them (samples/jobs/job.yaml).
given = {"num_processes": "JAX_NUM_PROCESSES", "process_id": "JAX_PROCESS_ID"}
jax.distributed.initialize(**{name: int(os.environ[key]) for name, key in given.items() if key in os.environ})

import numpy as np  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

BATCH, ODD = 64, 5  # examples of each process in a step; the process whose part has lost some


def own_part(lost):
    """The images and labels of this process."""
    data = np.load(Path(__file__).parent / "digits.npz")
    rank, ranks = jax.process_index(), jax.process_count()
    size = len(data["labels"]) // ranks
    part = slice(rank * size, (rank + 1) * size)
    images, labels = data["images"][part].reshape(-1, 64) / np.float32(16), data["labels"][part]
    keep = size - 7 if lost and rank == min(ODD, ranks - 1) else size
    return images[:keep], labels[:keep]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--lost", action="store_true", help="process 5 has fewer examples than the others")
    args = parser.parse_args()

    images, labels = own_part(args.lost)
    examples = len(labels)  # a Python number: it becomes a constant of the program
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    @jax.jit
    def train_step(weights, images, labels):
        def loss(weights):
            right = jax.nn.log_softmax(images @ weights) * jax.nn.one_hot(labels, 10)
            return -right.sum() / (examples * jax.process_count())

        value, gradient = jax.value_and_grad(loss)(weights)
        return weights - 2.0 * gradient, value

    weights = jax.device_put(np.zeros((64, 10), np.float32), whole)
    random = np.random.default_rng(jax.process_index())
    for step in range(args.steps):
        chosen = random.integers(0, examples, BATCH)
        batch = [jax.make_array_from_process_local_data(split, a[chosen]) for a in (images, labels)]
        weights, value = train_step(weights, *batch)
        if step % 10 == 0 and jax.process_index() == 0:
            print(f"step {step}: loss {float(value):.4f}", flush=True)


if __name__ == "__main__":
    main()
