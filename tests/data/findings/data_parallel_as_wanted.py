# eight devices, data parallel, replicated parameters that are donated: nothing to change
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
tx = optax.adam(1e-3)


@partial(jax.jit, out_shardings=replicated)
def create(key):
    params = {"a": jax.random.normal(key, (64, 256)), "b": jax.random.normal(jax.random.fold_in(key, 1), (256, 8))}
    return params, tx.init(params)


@partial(jax.jit, donate_argnums=(0, 1))
def step(params, opt_state, x, y):
    def loss_fn(p):
        return optax.softmax_cross_entropy_with_integer_labels(jax.nn.relu(x @ p["a"]) @ p["b"], y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


rng = np.random.default_rng(0)
params, opt_state = create(jax.random.key(0))
for i in range(20):
    x, y = rng.normal(size=(128, 64)).astype("float32"), rng.integers(0, 8, 128)
    x, y = jax.device_put((x, y), sharded)
    params, opt_state, loss = step(params, opt_state, x, y)
print(loss)
