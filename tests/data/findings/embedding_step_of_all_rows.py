# word vectors trained by plain gradient descent: each step updates the whole table
import functools

import jax
import jax.numpy as jnp
import numpy as np

WORDS, DIM, BATCH = 40_000, 32, 256


def loss(vectors, centers, contexts, negatives):
    center = vectors[centers]
    positive = jnp.einsum("bd,bd->b", center, vectors[contexts])
    negative = jnp.einsum("bd,bkd->bk", center, vectors[negatives])
    return -jnp.mean(jax.nn.log_sigmoid(positive) + jax.nn.log_sigmoid(-negative).sum(1))


@functools.partial(jax.jit, donate_argnums=0)
def train(vectors, words, rate):
    def step(vectors, words):
        value, grads = jax.value_and_grad(loss)(vectors, words[:, 0], words[:, 1], words[:, 2:])
        return vectors - rate * grads, value  # must: JX214 first ~ a whole table, float32\[40000,32\], although the gradient of at most 1,536 of its 40,000 rows

    return jax.lax.scan(step, vectors, words)


rng = np.random.default_rng(0)
vectors = jnp.asarray(rng.normal(size=(WORDS, DIM)) / 10, jnp.float32)
for epoch in range(4):
    vectors, values = train(vectors, rng.integers(0, WORDS, (50, BATCH, 6)).astype(np.int32), 0.1)
    print(f"{values.mean():.4f}")  # may: JX601
