"""The state is saved in the background, and restored with its shapes and shardings: each array is placed as
before.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def train_step(state, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(state["w"])
    w = jax.lax.with_sharding_constraint(state["w"] - 0.1 * gradient, NamedSharding(mesh, P("data")))
    return {"w": w, "count": state["count"] + 1}


def abstract(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


def main():
    w = jax.device_put(np.ones((64, 16), "f4"), NamedSharding(mesh, P("data")))
    x = jax.device_put(np.ones((32, 64), "f4"), NamedSharding(mesh, P()))
    state = {"w": w, "count": jax.device_put(np.int32(0), NamedSharding(mesh, P()))}
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(Path(folder) / "state", state)  # goes on while the training does
        checkpointer.wait_until_finished()
        state = checkpointer.restore(Path(folder) / "state", jax.tree.map(abstract, state))
    for _ in range(4):
        state = train_step(state, x)
    print(f"mean {state['w'].mean():.3f} after {state['count']} steps")


if __name__ == "__main__":
    main()
