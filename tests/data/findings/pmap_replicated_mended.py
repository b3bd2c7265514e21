# Mended: the state has the sharding of the results from the first call
# applies: fix-place-for-pmap
import jax
import jax.numpy as jnp
from flax import jax_utils
from jax.sharding import NamedSharding, PartitionSpec


def loss(w, x):
    return ((x @ w) ** 2).mean()


def step(w, x):
    return w - 0.1 * jax.lax.pmean(jax.grad(loss)(w, x), "batch")


p_step = jax.pmap(step, axis_name="batch")
state = jax_utils.replicate(jnp.ones((16, 4)))
state = jax.device_put(
    state, NamedSharding(jax.sharding.Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))
)
x = jnp.ones((jax.device_count(), 8, 16))
for _ in range(5):
    state = p_step(state, x)
