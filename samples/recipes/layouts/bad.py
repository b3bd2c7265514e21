"""Three layouts side by side: the report has a column for each, and with two of them devices have equal copies.

The batch alone is split, or the columns of one weight and the rows of the other, too, or both by both axes.
"""

# jaxscope run --vary LAYOUT=batch,model,both bad.py

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxscope

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
LAYOUTS = {
    "batch": (P(), P()),
    "model": (P(None, "model"), P("model", None)),
    "both": (P("data", "model"), P("model", "data")),
}
LAYOUT = LAYOUTS[os.environ.get("LAYOUT", "batch")]


def put(x, spec):
    return jax.device_put(x, NamedSharding(mesh, spec))  # JX502


@jax.jit
def predict(up, down, batch):
    return jnp.tanh(batch @ up) @ down


def main():
    up, down = [put(np.ones((1024, 1024), "f4") / 1024, spec) for spec in LAYOUT]
    batch = put(np.ones((64, 1024), "f4"), P("data"))
    for _ in range(4):
        out = predict(up, down, batch)
    jaxscope.snapshot()
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
