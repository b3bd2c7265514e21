# pmap: the state that flax replicates is on another mesh than the state that pmap returns
# never: out_shardings
import jax
import jax.numpy as jnp
from flax import jax_utils


def loss(w, x):
    return ((x @ w) ** 2).mean()


def step(w, x):
    return w - 0.1 * jax.lax.pmean(jax.grad(loss)(w, x), "batch")


p_step = jax.pmap(step, axis_name="batch")
state = jax_utils.replicate(jnp.ones((16, 4)))
x = jnp.ones((jax.device_count(), 8, 16))
for _ in range(5):
    state = p_step(state, x)  # must: JX120|JX115 first ~ Mesh\(jax.devices\(\), \('batch',\)\)
