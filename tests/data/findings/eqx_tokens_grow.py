# equinox: generation lengthens the tokens, and the model is compiled for each length
import equinox as eqx
import jax
import jax.numpy as jnp


class Model(eqx.Module):
    embed: eqx.nn.Embedding
    out: eqx.nn.Linear

    def __init__(self, key):
        self.embed = eqx.nn.Embedding(50, 16, key=key)
        self.out = eqx.nn.Linear(16, 50, key=key)

    def __call__(self, tokens):
        return self.out(jax.vmap(self.embed)(tokens).mean(0))


@eqx.filter_jit
def make_model(key):
    return Model(key)


@eqx.filter_jit
def next_token(model, tokens):
    return jnp.argmax(model(tokens), keepdims=True)


model = make_model(jax.random.key(0))
tokens = jnp.zeros(1, jnp.int32)
for _ in range(12):
    tokens = jnp.concatenate([tokens, next_token(model, tokens)])  # must: JX101|JX114 first
print(tokens.shape)
