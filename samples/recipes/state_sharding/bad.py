"""The parameters are sharded, but their moments are not: XLA returns the moments sharded, and step 2
compiles again.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
SHAPES = {"up": (1024, 4096), "down": (4096, 1024)}


def loss(params, batch):
    return jnp.mean((jnp.tanh(batch @ params["up"]) @ params["down"]) ** 2)


@partial(jax.jit, donate_argnums=0)
def train_step(state, batch):
    gradients = jax.grad(loss)(state["params"], batch)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, state["moments"], gradients)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], moments)
    return {"params": params, "moments": moments}


def main():
    params = {n: jax.device_put(jnp.ones(s), NamedSharding(mesh, P("data"))) for n, s in SHAPES.items()}
    moments = jax.device_put(jax.tree.map(jnp.zeros_like, params), NamedSharding(mesh, P()))  # JX502
    state = {"params": params, "moments": moments}
    batch = jax.device_put(jnp.ones((16, 1024)), NamedSharding(mesh, P("data")))
    for _ in range(4):
        state = train_step(state, batch)  # JX115 JX505
    print(f"mean {state['params']['up'].mean():.3f}")


if __name__ == "__main__":
    main()
