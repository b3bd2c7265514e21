"""With three of four layouts, several devices have equal copies of an array: the report compares the four.

The report has a column for each layout. ``replicated`` splits nothing, and ``batch`` only the batch. ``model`` also
splits the columns of one weight and the rows of the other. ``full`` splits both weights over both axes of the mesh.
"""

# jaxscope run --vary LAYOUT=replicated,batch,model,full bad.py

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
    "replicated": (P(), P(), P()),
    "batch": (P(), P(), P("data")),
    "model": (P(None, "model"), P("model", None), P("data")),
    "full": (P("data", "model"), P("model", "data"), P("data")),
}
LAYOUT = LAYOUTS[os.environ.get("LAYOUT", "batch")]


def put(x, spec):
    return jax.device_put(x, NamedSharding(mesh, spec))  # JX502


@jax.jit
def predict(up, down, batch):
    return jnp.tanh(batch @ up) @ down


def main():
    up, down = [put(np.ones((2560, 2560), "f4") / 2560, spec) for spec in LAYOUT[:2]]
    batch = put(np.ones((64, 2560), "f4"), LAYOUT[2])
    for _ in range(4):
        out = predict(up, down, batch)
    jaxscope.snapshot()
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
