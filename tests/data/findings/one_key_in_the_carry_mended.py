# applies: fix-key-of-iteration
import jax
import jax.numpy as jnp

VOCABULARY, WIDTH = 64, 32


def choose(key, logits, temperature):
    best, index = jax.lax.top_k(logits / temperature, 8)
    pick = jax.random.categorical(key, best)
    return index[pick]


@jax.jit
def generate(params, start, key):
    def body(carry, _):
        state, token, key = carry
        key, step_key = jax.random.split(key)
        state = jnp.tanh(state @ params["hidden"] + params["embed"][token])
        token = choose(step_key, state @ params["out"], 0.8)
        return (state, token, key), token

    return jax.lax.scan(body, (jnp.zeros(WIDTH), start, key), None, length=40)[1]


a, b, c = jax.random.split(jax.random.key(0), 3)
params = {
    "hidden": jax.random.normal(a, (WIDTH, WIDTH)) / 6,
    "embed": jax.random.normal(b, (VOCABULARY, WIDTH)),
    "out": jax.random.normal(c, (WIDTH, VOCABULARY)),
}
print(generate(params, 3, jax.random.key(1)))
