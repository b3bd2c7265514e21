"""``all_to_all`` under ``shard_map``: each device sends each other one the tokens of its expert, and no more."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("expert",), axis_types=(jax.sharding.AxisType.Auto,))
EXPERTS, TOKENS, WIDTH = 8, 4096, 128


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P("expert"))
def layer(weights, tokens):
    chosen = jnp.arange(len(tokens)) % EXPERTS  # of this device's tokens
    order = jnp.argsort(chosen)
    by_expert = tokens[order].reshape(EXPERTS, -1, WIDTH)
    mine = jax.lax.all_to_all(by_expert, "expert", split_axis=0, concat_axis=0)
    done = jax.nn.relu(mine.reshape(-1, WIDTH) @ weights[0]).reshape(by_expert.shape)
    back = jax.lax.all_to_all(done, "expert", split_axis=0, concat_axis=0)
    return back.reshape(-1, WIDTH)[jnp.argsort(order)]


def main():
    weights = jax.device_put(jnp.ones((EXPERTS, WIDTH, WIDTH)) / WIDTH, NamedSharding(mesh, P("expert")))
    tokens = jax.device_put(jnp.ones((TOKENS, WIDTH)), NamedSharding(mesh, P("expert")))
    for _ in range(3):
        out = layer(weights, tokens)
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
