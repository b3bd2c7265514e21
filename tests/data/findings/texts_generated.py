# two texts are generated token by token: the model is compiled for each length
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
table, out = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((50, 32), (32, 50)))


@jax.jit
def next_token(table, out, tokens):
    return (jnp.tanh(table[tokens]).mean(0) @ out).argmax(keepdims=True)


def generate(prompt, n):
    tokens = jnp.asarray(prompt)
    for _ in range(n):
        new = next_token(table, out, tokens)  # must: JX101|JX114 first ~ pad tokens to its longest length in every call
        tokens = jnp.concatenate([tokens, new])
    return tokens


print(generate([5, 3, 8, 1, 2, 7], 10))
print(generate([9, 4], 8))
