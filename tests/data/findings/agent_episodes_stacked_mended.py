# the episodes are padded to one length in NumPy; the padding gains nothing
# applies: fix-few-sizes, fix-sizes-of-operations
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def act(w, state, key):
    return jax.random.categorical(key, state @ w)


@jax.jit
def update(w, states, actions, gains, length):
    def loss(w):
        return -jnp.sum(jax.nn.log_softmax(states @ w)[jnp.arange(len(actions)), actions] * gains) / length

    return w - 0.01 * jax.grad(loss)(w)


LONGEST = 32
rng = np.random.default_rng(0)
w, key = jnp.zeros((4, 3)), jax.random.key(0)
for length in rng.permutation(np.arange(8, 32))[:14]:
    states, actions = np.zeros((LONGEST, 4), "float32"), [jnp.int32(0)] * LONGEST
    gains = np.zeros(LONGEST, "float32")
    gains[:length] = np.linspace(1, 0, length, dtype="float32")
    for t in range(length):
        key, sub = jax.random.split(key)
        states[t] = rng.normal(size=4)
        actions[t] = act(w, states[t], sub)
    w = update(w, states, jnp.stack(actions), gains, np.float32(length))
print(w.sum())
