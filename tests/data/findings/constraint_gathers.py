import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
s = lambda *p: NamedSharding(mesh, P(*p))
params = {
    "w1": jax.device_put(jnp.ones((256, 512)), s(None, "model")),
    "w2": jax.device_put(jnp.ones((512, 256)), s("model", None)),
    "emb": jax.device_put(jnp.ones((1024, 256)), s("model", None)),
}


@jax.jit
def step(params, ids):
    def loss(p):
        x = p["emb"][ids]  # gather from a table that is split by rows
        h = jax.nn.relu(x @ p["w1"])
        h = jax.lax.with_sharding_constraint(  # must: JX515 first
            h, s()
        )  # "just to be safe": all-gathers the activations
        y = h @ p["w2"]
        return jnp.mean((y - y[::-1]) ** 2)

    l, g = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, g), l


ids = jax.device_put(jnp.arange(64 * 16).reshape(64, 16) % 1024, s("data"))
for i in range(4):
    params, l = step(params, ids)
    print(i, float(l))
