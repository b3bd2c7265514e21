"""A job of several processes; one rank does something else: python ranks_that_differ.py MODE [SECONDS [RANK]]

RANK is the last one if not given. ``waits`` comes SECONDS late to step 2.
"""

import os
import signal
import sys
import time

import jax

jax.distributed.initialize()

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

MODES = ("const", "shape", "program", "order", "extra", "fewer", "exit", "kill", "waits")
how = sys.argv[1] if len(sys.argv) > 1 else ""
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
ranks = jax.process_count()
odd = jax.process_index() == (int(sys.argv[3]) if len(sys.argv) > 3 else ranks - 1)
sharding = NamedSharding(jax.make_mesh((jax.device_count(),), ("data",)), PartitionSpec("data"))
scale = 2.0 if how == "const" and odd else 1.0


def ones(size):
    whole = np.ones(size, "float32")
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


@jax.jit
def step(x):
    return jnp.sum(x * scale)


@jax.jit
def largest(x):
    return jnp.max(x)


@jax.jit
def extra(x):
    return jnp.sum(jnp.sin(x)), jnp.max(x)


def differs():
    """Print when the last rank begins to do something else."""
    print("differs at", time.time(), flush=True)
    return True


x = ones(16 * ranks if how == "shape" and odd and differs() else 8 * ranks)
if how == "const" and odd:
    differs()
for i in range(1 if how in ("", "const", "shape") else 4):
    if odd and i == 2 and how in MODES:
        differs()
        if how == "extra":
            extra(x)
        elif how == "exit":
            sys.exit(3)
        elif how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "waits":
            time.sleep(seconds)
        elif how == "fewer":
            break
    function = largest if odd and i == 2 and how in ("program", "order") else step
    value = function(x)
    if i == 2 and how == "order":
        (step if odd else largest)(x)
    print("value", float(value.addressable_data(0)), flush=True)
    if how in ("extra", "fewer", "exit"):
        time.sleep(seconds / 4)
