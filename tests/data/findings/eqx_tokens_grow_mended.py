# Mended: a buffer of the final length, and how much of it is filled
# applies: fix-one-length
import equinox as eqx
import jax
import jax.numpy as jnp


class Model(eqx.Module):
    embed: eqx.nn.Embedding
    out: eqx.nn.Linear

    def __init__(self, key):
        self.embed = eqx.nn.Embedding(50, 16, key=key)
        self.out = eqx.nn.Linear(16, 50, key=key)

    def __call__(self, tokens, n):
        filled = (jnp.arange(tokens.shape[0]) < n)[:, None]
        return self.out((jax.vmap(self.embed)(tokens) * filled).sum(0) / n)


@eqx.filter_jit
def make_model(key):
    return Model(key)


@eqx.filter_jit
def append_token(model, tokens, n):
    return tokens.at[n].set(jnp.argmax(model(tokens, n)))


model = make_model(jax.random.key(0))
tokens = jnp.zeros(13, jnp.int32)
for n in range(1, 13):
    tokens = append_token(model, tokens, jnp.int32(n))
print(tokens.shape)
