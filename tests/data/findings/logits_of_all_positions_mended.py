# applies: fix-slice-before
import functools

import jax
import jax.numpy as jnp

VOCABULARY, WIDTH, LENGTH = 20000, 96, 96


def normal(key, *shape):
    return 0.05 * jax.random.normal(key, shape)


def create(key):
    keys = jax.random.split(key, 4)
    return {
        "embedding": normal(keys[0], VOCABULARY, WIDTH),
        "gates": normal(keys[1], WIDTH, 2 * WIDTH),
        "state": normal(keys[2], WIDTH, 2 * WIDTH),
        "head": normal(keys[3], WIDTH, VOCABULARY),
    }


def hidden(params, tokens):
    def cell(h, x):
        gate, new = jnp.split(x @ params["gates"] + h @ params["state"], 2, axis=-1)
        gate = jax.nn.sigmoid(gate)
        h = gate * h + (1 - gate) * jnp.tanh(new)
        return h, h

    inputs = params["embedding"][tokens].swapaxes(0, 1)
    _, states = jax.lax.scan(cell, jnp.zeros_like(inputs[0]), inputs)
    return states.swapaxes(0, 1)


def model(params, tokens):
    logits = hidden(params, tokens)[:, -1] @ params["head"]
    return logits.astype(jnp.float32)


@functools.partial(jax.jit, donate_argnums=1)
def extend(params, tokens, key):
    scores = model(params, tokens) / 0.8
    token = jax.random.categorical(key, scores, axis=-1)
    return jnp.concatenate([tokens[:, 1:], token[:, None]], axis=1)


params = jax.jit(create)(jax.random.key(0))
tokens = jnp.zeros((16, LENGTH), jnp.int32)
for key in jax.random.split(jax.random.key(1), 12):
    tokens = extend(params, tokens, key)
print(tokens[:2, -12:])
