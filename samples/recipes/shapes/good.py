"""The same model: texts are padded to one of three lengths, and a mask leaves the padding out of the loss."""

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY, WIDTH = 64, 32
BUCKETS = (64, 128)


def texts(seed, n=12):
    """Yield batches of 8 texts and their length, padded to the next of BUCKETS."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        length = int(rng.integers(20, 120))
        tokens = rng.integers(0, VOCABULARY, (8, length), dtype=np.int32)
        bucket = next(b for b in BUCKETS if b >= length)
        yield np.pad(tokens, ((0, 0), (0, bucket - length))), np.int32(length)


def loss(params, tokens, length):
    hidden = jnp.cumsum(params["embed"][tokens], axis=1) / jnp.arange(1, tokens.shape[1] + 1)[:, None]
    scores = jax.nn.log_softmax(hidden @ params["out"])[:, :-1]
    each = -jnp.take_along_axis(scores, tokens[:, 1:, None], axis=2)[..., 0]
    mask = jnp.arange(1, tokens.shape[1]) < length
    return (each * mask).sum() / (mask.sum() * len(tokens))


@jax.jit
def train_step(params, tokens, length):
    value, grads = jax.value_and_grad(loss)(params, tokens, length)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def main():
    rng = np.random.default_rng(0)
    params = {
        "embed": jnp.asarray(rng.normal(size=(VOCABULARY, WIDTH)), jnp.float32),
        "out": jnp.asarray(rng.normal(size=(WIDTH, VOCABULARY)), jnp.float32),
    }
    for bucket in BUCKETS:  # each length is compiled once, before the training begins
        train_step.lower(params, np.zeros((8, bucket), np.int32), np.int32(0)).compile()
    for tokens, length in texts(1):
        params, value = train_step(params, tokens, length)
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
