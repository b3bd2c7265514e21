# Mended: the tokens have their final length, and the rest is masked
# applies: fix-one-length
import jax
import jax.numpy as jnp
import numpy as np

LONGEST = 16
rng = np.random.default_rng(0)
table, out = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((50, 32), (32, 50)))


@jax.jit
def next_token(table, out, tokens, n):
    known = jnp.arange(LONGEST) < n
    mean = (jnp.tanh(table[tokens]) * known[:, None]).sum(0) / n
    return tokens.at[n].set((mean @ out).argmax())


def generate(prompt, n):
    tokens = np.zeros(LONGEST, np.int32)
    tokens[: len(prompt)] = prompt
    for i in range(len(prompt), len(prompt) + n):
        tokens = next_token(table, out, tokens, np.int32(i))
    return tokens[: len(prompt) + n]


print(generate([5, 3, 8, 1, 2, 7], 10))
print(generate([9, 4], 8))
