"""A language model gets texts of different lengths: each length is a new shape, for which it is compiled again."""

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY, WIDTH = 64, 32


def texts(seed, n=12):
    """Yield batches of 8 texts, all of the length of the longest."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        length = int(rng.integers(20, 120))
        yield rng.integers(0, VOCABULARY, (8, length), dtype=np.int32)


def loss(params, tokens):
    hidden = jnp.cumsum(params["embed"][tokens], axis=1) / jnp.arange(1, tokens.shape[1] + 1)[:, None]
    scores = jax.nn.log_softmax(hidden @ params["out"])[:, :-1]
    return -jnp.take_along_axis(scores, tokens[:, 1:, None], axis=2).mean()


@jax.jit
def train_step(params, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def main():
    rng = np.random.default_rng(0)
    params = {
        "embed": jnp.asarray(rng.normal(size=(VOCABULARY, WIDTH)), jnp.float32),
        "out": jnp.asarray(rng.normal(size=(WIDTH, VOCABULARY)), jnp.float32),
    }
    for tokens in texts(1):
        params, value = train_step(params, tokens)  # JX101
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
