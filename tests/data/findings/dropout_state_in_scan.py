# an nnx model trained by a scan over the batches of an epoch: the state of its dropout is never returned
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(16, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.last = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.first(x))))[..., 0]


graphdef, params, rest = nnx.split(Net(nnx.Rngs(0)), nnx.Param, ...)
optimizer = optax.adam(1e-2)


@jax.jit
def train_epoch(params, opt_state, rest, x, y):
    def step(carry, batch):
        params, opt_state = carry

        def loss(params):
            model = nnx.merge(graphdef, params, rest, copy=True)
            return jnp.mean((model(batch[0]) - batch[1]) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), value

    (params, opt_state), values = jax.lax.scan(step, (params, opt_state), (x, y))  # must: JX135 first ~ same random numbers \(jax.random.bernoulli, line 16\) in each iteration of the jax.lax loop
    return params, opt_state, values.mean()


rng = np.random.default_rng(0)
x = rng.normal(size=(20, 32, 16)).astype(np.float32)
opt_state = jax.jit(optimizer.init)(params)
for _ in range(5):
    params, opt_state, value = train_epoch(params, opt_state, rest, x, x.sum(-1))
print(f"{value:.3f}")
