# a classifier with batch normalization: the training step drops the new statistics, and the evaluation uses the first ones
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state

rng = np.random.default_rng(0)
points = jnp.asarray(rng.normal(3.0, 2.0, (1024, 8)).astype("f4"))
labels = (points[:, 0] * points[:, 1] > 9.0).astype(jnp.int32)


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for width in (32, 32):
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(nn.Dense(width)(x)))
        return nn.Dense(2)(x)


class State(train_state.TrainState):
    batch_stats: dict


@jax.jit
def step(state, x, y):
    def loss(params):
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, updates = state.apply_fn(variables, x, train=True, mutable=["batch_stats"])  # must: JX140 first ~ also return updates from the loss
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads), value


@jax.jit
def accuracy(state, x, y):
    logits = state.apply_fn({"params": state.params, "batch_stats": state.batch_stats}, x, train=False)
    return (logits.argmax(-1) == y).mean()


model = Network()
variables = jax.jit(lambda key: model.init(key, points[:8], train=True))(jax.random.key(0))
state = State.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-2), batch_stats=variables["batch_stats"])
for _ in range(40):
    state, value = step(state, points, labels)
print(f"{value:.3f} {accuracy(state, points, labels):.3f}")
