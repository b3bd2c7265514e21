"""One trunk and several heads are trained on sources that are drawn in another order in each step."""

from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np

SOURCES = {"rain": 3, "river": 1, "snow": 2}


@jax.jit
def init(key):
    k_trunk, *keys = jax.random.split(key, 1 + len(SOURCES))
    heads = {n: 0.1 * jax.random.normal(k, (32, d)) for k, (n, d) in zip(keys, SOURCES.items(), strict=True)}
    return {"trunk": 0.1 * jax.random.normal(k_trunk, (8, 32)), "heads": heads}


@jax.jit
def train_step(params, batch):
    def loss(p):
        errors = [
            ((jnp.tanh(x @ p["trunk"]) @ p["heads"][name] - y) ** 2).mean() for name, (x, y) in batch.items()
        ]
        return sum(errors)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value


def batches(steps):
    rng = np.random.default_rng(0)
    names = list(SOURCES)
    for _ in range(steps):
        rng.shuffle(names)
        drawn = ((n, rng.normal(size=(64, 8)).astype(np.float32)) for n in names)
        yield OrderedDict((n, (x, np.sin(x[:, : SOURCES[n]]))) for n, x in drawn)


params = init(jax.random.key(0))
for batch in batches(40):
    params, value = train_step(params, batch)  # must: JX105 first ~ OrderedDict .* keys in the same order
print(f"loss {float(value):.4f}")
