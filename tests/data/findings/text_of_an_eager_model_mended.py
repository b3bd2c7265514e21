# Mended: the tokens have their final length from the start; one token is a jitted function
# applies: fix-one-size-first, fix-final-length, fix-jit-step-function, python-values-static
import jax
import jax.numpy as jnp

WORDS, WIDTH, CONTEXT = 30, 16, 12
keys = jax.random.split(jax.random.key(0), 5)
shapes = [(WORDS, WIDTH), (CONTEXT, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, WORDS)]
weights = [0.3 * jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]


def model(weights, tokens):
    length = tokens.shape[1]
    x = weights[0][tokens] + weights[1][jnp.arange(length)]
    for layer in range(2):
        queries = x @ weights[2]
        scores = jnp.where(jnp.tril(jnp.ones((length, length))) == 0, -jnp.inf, queries @ x.transpose(0, 2, 1))
        x = x + jax.nn.softmax(scores, axis=-1) @ (x @ weights[3])
        x = x / jnp.sqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-5)
    return x @ weights[4]


@jax.jit
def one_token(weights, tokens, position):
    start = jnp.maximum(0, position - CONTEXT + 1)
    context = jax.lax.dynamic_slice_in_dim(tokens, start, CONTEXT, axis=1)
    logits = model(weights, context)[:, position - start]
    return tokens.at[:, position + 1].set(jnp.argmax(logits, axis=-1))


tokens = jnp.zeros((1, 41), int)
for position in range(40):
    tokens = one_token(weights, tokens, position)
print(int(tokens.sum()))
