# flax: an actor and a critic, each with its own TrainState, trained by one function
# may: JX133 note
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Actor(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(32)(x)))


class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.tanh(nn.Dense(32)(x)))


@jax.jit
def train_step(state, x, y):
    def loss(params):
        return ((state.apply_fn(params, x) - y) ** 2).mean()

    return state.apply_gradients(grads=jax.grad(loss)(state.params))


def create(model, key):
    params = jax.jit(model.init)(key, x)
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(1e-3))


x, y = jnp.ones((8, 16)), jnp.ones((8, 4))
actor, critic = create(Actor(), jax.random.key(0)), create(Critic(), jax.random.key(1))
for i in range(6):
    actor = train_step(actor, x, y)
    critic = train_step(critic, x, y)
