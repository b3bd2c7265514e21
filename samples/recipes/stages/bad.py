"""Each of eight devices has one layer, and a scan goes over the layers: all layers are gathered on every device."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("stage",), axis_types=(jax.sharding.AxisType.Auto,))
STAGES, BATCHES, ROWS, WIDTH = 8, 16, 32, 256


@jax.jit
def forward(layers, batches):
    def layer(x, w):
        return jnp.tanh(x @ w), None

    return jax.lax.scan(layer, batches, layers)[0]  # JX401


def main():
    layers = jax.device_put(jnp.ones((STAGES, WIDTH, WIDTH)) / WIDTH, NamedSharding(mesh, P("stage")))
    batches = jax.device_put(jnp.ones((BATCHES, ROWS, WIDTH)), NamedSharding(mesh, P()))
    for _ in range(3):
        out = forward(layers, batches)
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
