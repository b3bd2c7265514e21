# pmap: the weights of the step before are not read again; pmap has no donate_argnames
# never: donate_argnames
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec


def step(w, x):
    return w - 0.1 * jax.lax.pmean(jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w), "batch")


p_step = jax.pmap(step, axis_name="batch")
sharding = NamedSharding(jax.sharding.Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))
w = jax.device_put(jnp.ones((jax.device_count(), 2560, 2560)), sharding)
x = jax.device_put(jnp.ones((jax.device_count(), 8, 2560)), sharding)
for _ in range(5):
    w = p_step(w, x)  # must: JX506 ~ donate_argnums
print(w.sum())
