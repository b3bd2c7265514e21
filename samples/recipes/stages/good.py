"""A pipeline: each device keeps its layer, and ``ppermute`` passes one batch after the other to the next device."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("stage",), axis_types=(jax.sharding.AxisType.Auto,))
STAGES, BATCHES, ROWS, WIDTH = 8, 16, 32, 256


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P("stage"), P()), out_specs=P("stage"))
def forward(layers, batches):
    stage = jax.lax.axis_index("stage")

    def turn(passed, n):
        x = jnp.where(stage == 0, batches[jnp.minimum(n, BATCHES - 1)], passed)
        x = jnp.tanh(x @ layers[0])
        return jax.lax.ppermute(x, "stage", [(k, (k + 1) % STAGES) for k in range(STAGES)]), x

    first = jax.lax.pcast(jnp.zeros((ROWS, WIDTH)), "stage", to="varying")
    _, done = jax.lax.scan(turn, first, jnp.arange(BATCHES + STAGES - 1))
    return done[None, STAGES - 1 :]  # those of the last device are whole


def main():
    layers = jax.device_put(jnp.ones((STAGES, WIDTH, WIDTH)) / WIDTH, NamedSharding(mesh, P("stage")))
    batches = jax.device_put(jnp.ones((BATCHES, ROWS, WIDTH)), NamedSharding(mesh, P()))
    for _ in range(3):
        out = forward(layers, batches)
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
