# applies: fix-convert-list
import jax
import jax.numpy as jnp
import numpy as np

WORDS = 500


@jax.jit
def step(table, centers, contexts):
    def loss(table):
        return -jax.nn.log_sigmoid((table[0][centers] * table[1][contexts]).sum(-1)).mean()

    return table - 0.1 * jax.grad(loss)(table)


def batches(corpus, size=256):
    centers, contexts = [], []
    for i in range(len(corpus) - 3):
        for j in range(1, 4):
            centers.append(corpus[i])
            contexts.append(corpus[i + j])
            if len(centers) == size:
                yield jnp.asarray(np.array(centers)), jnp.asarray(np.array(contexts))
                centers, contexts = [], []


rng = np.random.default_rng(0)
table = jnp.asarray(rng.normal(0, 0.1, (2, WORDS, 16)), jnp.float32)
for centers, contexts in batches(rng.integers(0, WORDS, 60_000)):
    table = step(table, centers, contexts)
print(table.sum())
