"""The parameters are sharded, but the moments of the optimizer are not: each of the 8 devices has all moments."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxscope

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
SHAPES = {"up": (1024, 4096), "down": (4096, 1024)}
MOMENTS = P()


def loss(params, batch):
    return jnp.mean((jnp.tanh(batch @ params["up"]) @ params["down"]) ** 2)


def placement(of):
    return {name: NamedSharding(mesh, of) for name in SHAPES}


SHARDINGS = {"params": placement(P("data")), "moments": placement(MOMENTS)}


@partial(jax.jit, donate_argnums=0, out_shardings=SHARDINGS)
def train_step(state, batch):
    gradients = jax.grad(loss)(state["params"], batch)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, state["moments"], gradients)  # JX401
    params = jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], moments)
    return {"params": params, "moments": moments}


def main():
    state = {
        "params": {name: np.ones(shape, "f4") for name, shape in SHAPES.items()},
        "moments": {name: np.zeros(shape, "f4") for name, shape in SHAPES.items()},
    }
    state = jax.device_put(state, SHARDINGS)
    batch = jax.device_put(jnp.ones((16, 1024)), NamedSharding(mesh, P("data")))
    for _ in range(4):
        state = train_step(state, batch)  # JX502
    jaxscope.snapshot()
    print(f"mean {state['params']['up'].mean():.3f}")


if __name__ == "__main__":
    main()
