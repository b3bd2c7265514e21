# Mended: one step for all folds, which creates the optimizer from the learning rate, and only full batches
# applies: fix-odd-batches, fix-define-once
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
x = rng.normal(size=(1797, 16)).astype("float32")
y = (x.sum(1) > 0).astype("float32")


@jax.jit
def loss(w, x, y):
    hidden = jnp.tanh(x @ w["in"])
    return optax.sigmoid_binary_cross_entropy(hidden @ w["out"], y).mean()


@jax.jit
def step(w, state, x, y, rate):
    updates, state = optax.adam(rate).update(jax.grad(loss)(w, x, y), state)
    return optax.apply_updates(w, updates), state


def train_fold(rows, rate):
    w = jax.device_put({"in": np.full((16, 32), 0.1, "float32"), "out": np.zeros(32, "float32")})
    state = init(w)
    for epoch in range(3):
        rows = rng.permutation(rows)
        for i in range(0, len(rows) - 127, 128):
            some = rows[i : i + 128]
            w, state = step(w, state, x[some], y[some], rate)
    return w


init = jax.jit(optax.adam(1.0).init)
folds = np.array_split(rng.permutation(1797), 4)
for rate in (1e-2, 1e-3):
    for k in range(4):
        rows = np.concatenate([fold for n, fold in enumerate(folds) if n != k])
        w = train_fold(rows, rate)
        print(rate, k, float(loss(w, x[folds[k][:400]], y[folds[k][:400]])))
