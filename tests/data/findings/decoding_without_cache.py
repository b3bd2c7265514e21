# A small language model writes one token after the other; each step computes the whole sequence
import jax
import jax.numpy as jnp
import numpy as np

LENGTH, WIDTH, VOCABULARY = 128, 128, 2000
rng = np.random.default_rng(0)
normal = lambda *shape: jnp.asarray(rng.normal(size=shape) / shape[0] ** 0.5, jnp.float32)
params = {
    "embedding": normal(VOCABULARY, WIDTH),
    "position": normal(LENGTH, WIDTH),
    "qkv": normal(WIDTH, 3 * WIDTH),
    "up": normal(WIDTH, 4 * WIDTH),
    "down": normal(4 * WIDTH, WIDTH),
}


def model(params, tokens):
    x = params["embedding"][tokens] + params["position"]
    q, k, v = jnp.split(x @ params["qkv"], 3, axis=-1)
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / WIDTH**0.5
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    x = x + jax.nn.softmax(scores) @ v
    x = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
    return x @ params["embedding"].T  # must: JX211 first ~ cache


@jax.jit
def next_token(params, tokens, t):
    token = model(params, tokens)[:, t - 1].argmax(-1)
    return tokens.at[:, t].set(token)


tokens = jnp.zeros((8, LENGTH), jnp.int32).at[:, :4].set(rng.integers(0, VOCABULARY, (8, 4)))
for t in range(4, LENGTH):
    tokens = next_token(params, tokens, t)
print(np.asarray(tokens).sum())
