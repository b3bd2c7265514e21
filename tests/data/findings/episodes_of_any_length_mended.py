# the episodes are NumPy arrays, and the update gets a batch of one size
# applies: fix-iterate-numpy
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


@jax.jit
def update(params, observations, actions, mask):
    def loss(params):
        logits = observations @ params
        return jnp.sum(mask * (jnp.logaddexp(0.0, logits) - actions * logits)) / jnp.sum(mask)

    return params - 0.1 * jax.grad(loss)(params)


def episode(params, length):
    observations = rng.normal(size=(length, 4)).astype(np.float32)
    chance = 1 / (1 + np.exp(-observations @ params))
    return observations, (rng.random(length) < chance).astype(int)


def padded(observations, actions, size=256):
    n = len(observations)
    mask = (np.arange(size) < n).astype(np.float32)
    return np.pad(observations, ((0, size - n), (0, 0))), np.pad(actions, (0, size - n)), mask


params = jnp.zeros(4)
all_observations, all_actions = [], []
for i in range(1, 25):
    observations, actions = episode(np.asarray(params), 10 + (7 * i) % 23)
    all_observations.extend(observations)
    all_actions.extend(actions)
    if i % 8 == 0:
        params = update(params, *padded(all_observations, all_actions))
        all_observations, all_actions = [], []
print(params.sum())
