# The whole training is one jitted call, vmapped over seeds; each run counts its own steps
import jax
import jax.numpy as jnp

EVERY = 25


def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w) - jnp.sin(x)) ** 2)


def evaluate(w, key):
    def one(total, k):
        x = jax.random.normal(k, (512, 64))
        return total + loss(w, x), None

    total, _ = jax.lax.scan(one, 0.0, jax.random.split(key, 16))
    return total / 16


def update(state, _):
    w, key, step, score = state
    key, k_data, k_eval = jax.random.split(key, 3)
    w = w - 0.1 * jax.grad(loss)(w, jax.random.normal(k_data, (64, 64)))
    score = jax.lax.cond(step % EVERY == 0, lambda: evaluate(w, k_eval), lambda: score)  # must: JX206 first ~ compute it from a value that vmap does not batch
    return (w, key, step + 1, score), score


def initial(key):
    return jnp.zeros((64, 64)), key, jnp.int32(0), jnp.float32(0)


def train(state):
    return jax.lax.scan(update, state, None, length=200)[1]


states = jax.jit(jax.vmap(initial))(jax.random.split(jax.random.key(0), 4))
scores = jax.jit(jax.vmap(train))(states)
print(scores[:, -1].mean())
