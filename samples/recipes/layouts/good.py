"""Two layouts that split all of the weights, by both axes of the mesh or by rows alone: compare collectives."""

# jaxscope run --vary LAYOUT=full,rows good.py

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxscope

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
LAYOUTS = {"full": (P("data", "model"), P("model", "data")), "rows": (P(("data", "model")),) * 2}
LAYOUT = LAYOUTS[os.environ.get("LAYOUT", "full")]


def put(x, spec):
    return jax.device_put(x, NamedSharding(mesh, spec))


@jax.jit
def predict(up, down, batch):
    return jnp.tanh(batch @ up) @ down


def main():
    up, down = [put(np.ones((2560, 2560), "f4") / 2560, spec) for spec in LAYOUT]
    batch = put(np.ones((64, 2560), "f4"), P("data"))
    for _ in range(4):
        out = predict(up, down, batch)
    jaxscope.snapshot()
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
