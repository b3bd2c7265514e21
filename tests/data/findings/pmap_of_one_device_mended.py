# Mended: they are split over the devices before the first call
# applies: fix-place-for-pmap
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec


def learner(params, keys):
    def turn(n, params):
        noise = jax.random.normal(jax.random.fold_in(keys, n), params.shape)
        return params - 0.1 * jax.lax.pmean(jnp.tanh(params + noise), "i")

    return jax.lax.fori_loop(0, 3, turn, params)


learn = jax.pmap(learner, axis_name="i")
params = jnp.broadcast_to(jnp.linspace(0.0, 1.0, 1 << 18), (4, 1 << 18))
mesh = jax.sharding.Mesh(jax.devices(), ("i",))
params = jax.device_put(params, NamedSharding(mesh, PartitionSpec("i")))
keys = jax.random.split(jax.random.key(0), 4)
keys = jax.device_put(keys, NamedSharding(mesh, PartitionSpec("i")))
learn(params, keys)
new = learn(params, keys)
print(new.mean())
