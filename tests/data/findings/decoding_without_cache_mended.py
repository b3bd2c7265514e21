# Mended: the keys and values of earlier tokens are kept
# applies: fix-key-value-cache
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


@jax.jit
def next_token(params, cache, tokens, t):
    x = params["embedding"][tokens[:, t - 1]] + params["position"][t - 1]
    q, k, v = jnp.split(x @ params["qkv"], 3, axis=-1)
    cache = jax.lax.dynamic_update_slice(cache, jnp.stack([k, v])[:, :, None], (0, 0, t - 1, 0))
    scores = jnp.einsum("bd,bkd->bk", q, cache[0]) / WIDTH**0.5
    scores = jnp.where(jnp.arange(LENGTH) < t, scores, -1e9)
    x = x + jnp.einsum("bk,bkd->bd", jax.nn.softmax(scores), cache[1])
    x = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
    token = (x @ params["embedding"].T).argmax(-1)
    return cache, jnp.where(t < 4, tokens, tokens.at[:, t].set(token))


tokens = jnp.zeros((8, LENGTH), jnp.int32).at[:, :4].set(rng.integers(0, VOCABULARY, (8, 4)))
cache = jnp.zeros((2, 8, LENGTH, WIDTH))
for t in range(1, LENGTH):
    cache, tokens = next_token(params, cache, tokens, t)
print(np.asarray(tokens).sum())
