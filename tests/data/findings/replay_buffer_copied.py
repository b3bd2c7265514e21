# a replay buffer on the device: each transition that is stored copies the whole buffer
import jax
import jax.numpy as jnp
import numpy as np

CAPACITY, SHAPE = 4000, (32, 32)


@jax.jit
def store(buffer, index, obs, reward):
    return {
        "obs": buffer["obs"].at[index].set(obs),
        "reward": buffer["reward"].at[index].set(reward),
    }


@jax.jit
def act(w, obs):
    return jnp.argmax(jnp.tanh(obs.ravel() / 255.0) @ w)


rng = np.random.default_rng(0)
w = jax.device_put(rng.normal(size=(SHAPE[0] * SHAPE[1], 4)).astype(np.float32))
buffer = {"obs": jnp.zeros((CAPACITY, *SHAPE), jnp.float32), "reward": jnp.zeros(CAPACITY, jnp.float32)}
frames = rng.random((50, *SHAPE)).astype(np.float32) * 255
actions = []
for n in range(400):
    frame = frames[n % 50]
    actions.append(act(w, frame))
    buffer = store(buffer, n, frame, np.float32(n % 7))  # must: JX506 first ~ this function mostly copies them
print(np.bincount(np.asarray(jnp.stack(actions)), minlength=4))
