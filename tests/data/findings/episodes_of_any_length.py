# episodes of changing length are appended to lists, element by element, before a jitted update
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


@jax.jit
def act(params, observation, key):
    key, draw = jax.random.split(key)
    return jax.random.bernoulli(draw, jax.nn.sigmoid(observation @ params)).astype(int), key


@jax.jit
def update(params, observations, actions):
    def loss(params):
        logits = observations @ params
        return jnp.mean(jnp.logaddexp(0.0, logits) - actions * logits)

    return params - 0.1 * jax.grad(loss)(params)


def episode(params, key, length):
    observations, actions = [], []
    for _ in range(length):
        observation = rng.normal(size=4).astype(np.float32)
        action, key = act(params, observation, key)
        observations.append(observation)
        actions.append(action)
    return jnp.array(observations), jnp.array(actions), key  # may: JX133


params, key = jnp.zeros(4), jax.random.key(0)
all_observations, all_actions = [], []
for i in range(1, 25):
    observations, actions, key = episode(params, key, 10 + (7 * i) % 23)
    all_observations.extend(observations)  # must: JX133 first ~ np.asarray
    all_actions.extend(actions)  # must: JX133 ~ np.asarray
    if i % 8 == 0:
        params = update(params, jnp.array(all_observations), jnp.array(all_actions))  # may: JX101
        all_observations, all_actions = [], []
print(params.sum())
