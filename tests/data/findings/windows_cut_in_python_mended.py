# the windows of a batch of text are cut and masked as whole arrays, with NumPy
# applies: fix-python-in-loop
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCABULARY, WINDOW, BATCH = 200, 64, 128


def model(tokens):
    x = hk.Embed(VOCABULARY, 32)(tokens)
    x = jax.nn.relu(hk.Linear(64)(x))
    return hk.Linear(VOCABULARY)(x)


net = hk.without_apply_rng(hk.transform(model))
optimizer = optax.adam(1e-3)


def loss_fn(params, inputs, targets):
    losses = optax.softmax_cross_entropy_with_integer_labels(net.apply(params, inputs), targets)
    return losses.mean()


@jax.jit
def update(params, opt_state, inputs, targets):
    grads = jax.grad(loss_fn)(params, inputs, targets)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state


def sample(text, rng):
    starts = rng.integers(0, len(text) - WINDOW - 1, BATCH)
    windows = text[starts[:, None] + np.arange(WINDOW + 1)]
    inputs = np.where(rng.random((BATCH, WINDOW)) < 0.1, 0, windows[:, :-1])
    return inputs, windows[:, 1:]


def main():
    rng = np.random.default_rng(0)
    text = rng.integers(1, VOCABULARY, 20_000)
    params = jax.jit(net.init)(jax.random.key(0), np.zeros((BATCH, WINDOW), int))
    opt_state = jax.jit(optimizer.init)(params)
    for _ in range(300):
        inputs, targets = sample(text, rng)
        params, opt_state = update(params, opt_state, inputs, targets)
    inputs, targets = sample(text, rng)
    print(f"{float(jax.jit(loss_fn)(params, inputs, targets)):.2f}")


if __name__ == "__main__":
    main()
