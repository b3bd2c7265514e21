# Mended: the state of the dropout is carried and returned
# applies: fix-key-in-state
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
        params, opt_state, rest = carry

        def loss(params):
            model = nnx.merge(graphdef, params, rest, copy=True)
            value = jnp.mean((model(batch[0]) - batch[1]) ** 2)
            return value, nnx.split(model, nnx.Param, ...)[2]

        (value, rest), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state, rest), value

    (params, opt_state, rest), values = jax.lax.scan(step, (params, opt_state, rest), (x, y))
    return params, opt_state, rest, values.mean()


rng = np.random.default_rng(0)
x = rng.normal(size=(20, 32, 16)).astype(np.float32)
opt_state = jax.jit(optimizer.init)(params)
for _ in range(5):
    params, opt_state, rest, value = train_epoch(params, opt_state, rest, x, x.sum(-1))
print(f"{value:.3f}")
