# an agent's episodes have other lengths each time: the update and what stacks its arguments recompile for each
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def act(w, state, key):
    return jax.random.categorical(key, state @ w)


@jax.jit
def update(w, states, actions, gains):
    def loss(w):
        return -jnp.mean(jax.nn.log_softmax(states @ w)[jnp.arange(len(actions)), actions] * gains)

    return w - 0.01 * jax.grad(loss)(w)


rng = np.random.default_rng(0)
w, key = jnp.zeros((4, 3)), jax.random.key(0)
for length in rng.permutation(np.arange(8, 32))[:14]:
    states, actions = [], []
    for _ in range(length):
        key, sub = jax.random.split(key)
        state = jax.device_put(rng.normal(size=4).astype("float32"))
        states.append(state)
        actions.append(act(w, state, sub))
    gains = np.linspace(1, 0, length, dtype="float32")
    w = update(w, jnp.stack(states), jnp.stack(actions), gains)  # must: JX101 first ~ also caused .* recompiles of operations outside jit
print(w.sum())
