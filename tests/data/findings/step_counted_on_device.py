# the step number is an array of the train state, and an if in each iteration reads it
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training import train_state


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(512)(nn.relu(nn.Dense(512)(x)))))


model = Model()
params = jax.jit(model.init)(jax.random.key(0), jnp.ones((1, 32)))
state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
state = state.replace(step=jnp.asarray(0))


@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        return jnp.mean((state.apply_fn(params, x)[:, 0] - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


rng = np.random.default_rng(0)
for epoch in range(3):
    for _ in range(60):
        x = rng.normal(size=(256, 32)).astype("float32")
        state, loss = train_step(state, x, x[:, 0] * x[:, 1])
        if state.step % 30 == 0:  # must: JX601 first ~ count the iterations in a Python variable
            print(f"{int(state.step)} {loss:.4f}")
