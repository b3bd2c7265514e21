# applies: fix-triangle-by-mask
# A small transformer predicts the next value of series; each head of its attention hides the values that follow
import jax
import jax.numpy as jnp

BATCH, LENGTH, WIDTH, HEADS = 8, 128, 64, 4
LATER = jnp.triu(jnp.ones((LENGTH, LENGTH), bool), 1)


def head(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1])
    scores = jnp.where(LATER, -jnp.inf, scores)
    return jax.nn.softmax(scores) @ v


def attention(params, x):
    q, k, v = ((x @ params[name]).reshape(LENGTH, HEADS, -1).transpose(1, 0, 2) for name in "qkv")
    mixed = jax.vmap(head)(q, k, v).transpose(1, 0, 2).reshape(LENGTH, WIDTH)
    return x + mixed @ params["out"]


def loss(params, series):
    hidden = jnp.tanh(series[:, :-1, None] * params["in"])
    hidden = jax.vmap(attention, (None, 0))(params, hidden)
    return jnp.mean((hidden @ params["last"] - series[:, 1:]) ** 2)


@jax.jit
def step(params, series):
    value, gradient = jax.value_and_grad(loss)(params, series)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient), value


keys = jax.random.split(jax.random.key(0), 7)
params = {
    name: jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5
    for name, key in zip(["q", "k", "v", "out"], keys)
}
params |= {"in": jax.random.normal(keys[4], (WIDTH,)), "last": jax.random.normal(keys[5], (WIDTH,)) / WIDTH}
series = jnp.sin(jnp.arange(LENGTH + 1) / 5 + jax.random.uniform(keys[6], (BATCH, 1), maxval=6.0))
for _ in range(60):
    params, value = step(params, series)
print(f"{float(value):.4f}")
