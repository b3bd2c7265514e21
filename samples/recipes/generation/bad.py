"""Each new token is appended to the cache of keys and values: the cache has another length in every call,
and every call compiles.
"""

import jax
import jax.numpy as jnp

WIDTH, LENGTH = 32, 12


@jax.jit
def decode(weights, token, cache):
    cache = jnp.concatenate([cache, (token @ weights["key"])[None]])
    attention = jax.nn.softmax(cache @ token / WIDTH**0.5)
    return jnp.tanh((attention @ cache) @ weights["out"]), cache


@jax.jit
def initial(key):
    a, b = jax.random.split(key)
    return {"key": jax.random.normal(a, (WIDTH, WIDTH)), "out": jax.random.normal(b, (WIDTH, WIDTH))}


def main():
    weights = initial(jax.random.key(0))
    token, cache = jnp.ones(WIDTH), jnp.zeros((0, WIDTH))
    for _ in range(LENGTH):
        token, cache = decode(weights, token, cache)  # JX114
    print(f"{cache.shape[0]} tokens, mean {token.mean():.3f}")


if __name__ == "__main__":
    main()
