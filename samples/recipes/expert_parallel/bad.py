"""The experts on eight devices are written as one matrix product: each device gets all tokens, although it
needs only those of its expert.
"""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("expert",), axis_types=(jax.sharding.AxisType.Auto,))
EXPERTS, TOKENS, WIDTH = 8, 4096, 128


@jax.jit
def layer(weights, tokens):
    chosen = jnp.arange(TOKENS) % EXPERTS  # a router that fills all experts equally
    order = jnp.argsort(chosen)
    sent = tokens[order].reshape(EXPERTS, TOKENS // EXPERTS, WIDTH)  # JX401
    done = jax.nn.relu(jnp.einsum("etw,ewv->etv", sent, weights))
    return done.reshape(TOKENS, WIDTH)[jnp.argsort(order)]


def main():
    weights = jax.device_put(jnp.ones((EXPERTS, WIDTH, WIDTH)) / WIDTH, NamedSharding(mesh, P("expert")))
    tokens = jax.device_put(jnp.ones((TOKENS, WIDTH)), NamedSharding(mesh, P("expert")))
    for _ in range(3):
        out = layer(weights, tokens)
    print(f"mean {out.mean():.3f}")


if __name__ == "__main__":
    main()
