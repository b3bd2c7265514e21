# applies: fix-gather-results
# A contrastive loss over 4 devices: each device encodes its own images, and gathers the embeddings
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def encode(w, x):
    for layer in w:
        x = jnp.tanh(x @ layer)
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def loss(w, a, b):
    a = jax.lax.all_gather(encode(w, a), "data", tiled=True)
    b = jax.lax.all_gather(encode(w, b), "data", tiled=True)
    logits = a @ b.T / 0.1
    return -jnp.diag(jax.nn.log_softmax(logits)).mean()


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)
def step(w, a, b):
    gradient = jax.lax.pmean(jax.grad(loss)(w, a, b), "data")
    return jax.tree.map(lambda p, g: p - 0.1 * g, w, gradient)


keys = jax.random.split(jax.random.key(0), 3)
w = [0.05 * jax.random.normal(k, s) for k, s in zip(keys, [(1024, 512), (512, 512), (512, 64)], strict=True)]
w = jax.device_put(w, jax.NamedSharding(mesh, P()))
images = jax.device_put(jax.random.normal(keys[0], (2, 256, 1024)), jax.NamedSharding(mesh, P(None, "data")))
for _ in range(5):
    w = step(w, images[0], images[1])
print(jax.tree.map(jnp.linalg.norm, w))
