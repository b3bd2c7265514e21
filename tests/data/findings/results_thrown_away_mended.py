# Mended: the results are assigned
# applies: fix-assign-back
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state


class TrainState(train_state.TrainState):
    key: jax.Array


class Denoiser(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(32)(nn.relu(nn.Dense(64)(x)))


@partial(jax.jit, donate_argnums=0)
def train_step(state, x):
    key, draw = jax.random.split(state.key)
    noise = jax.random.normal(draw, x.shape)

    def loss(params):
        return jnp.mean((state.apply_fn({"params": params}, x + noise) - x) ** 2)

    value, grads = jax.value_and_grad(loss)(state.params)
    state = state.apply_gradients(grads=grads)
    state = state.replace(key=key)
    return state, value


def best_of(losses):
    losses = losses.at[0].set(jnp.inf)
    return losses.min()


model = Denoiser()
params = jax.jit(model.init)(jax.random.key(0), jnp.ones((1, 32)))["params"]
state = TrainState.create(
    apply_fn=model.apply, params=params, tx=optax.adam(1e-3), key=jax.random.key(1)
)
data, losses = np.random.default_rng(0).normal(size=(20, 16, 32)).astype(np.float32), []
for x in data:
    state, value = train_step(state, x)
    losses.append(value)
print(jax.jit(best_of)(jnp.stack(losses)))
