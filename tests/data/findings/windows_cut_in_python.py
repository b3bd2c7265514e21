# the windows of a batch of text are cut and masked token by token in Python
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
    inputs, targets = [], []
    for start in rng.integers(0, len(text) - WINDOW - 1, BATCH):
        row = []
        for k in range(WINDOW):
            token = text[start + k]
            row.append(0 if rng.random() < 0.1 else token)  # must: JX606 first
        inputs.append(row)
        targets.append(text[start + 1 : start + WINDOW + 1])
    return np.array(inputs), np.array(targets)


def main():
    rng = np.random.default_rng(0)
    text = rng.integers(1, VOCABULARY, 20_000).tolist()
    params = jax.jit(net.init)(jax.random.key(0), np.zeros((BATCH, WINDOW), int))
    opt_state = jax.jit(optimizer.init)(params)
    for _ in range(300):
        inputs, targets = sample(text, rng)
        params, opt_state = update(params, opt_state, inputs, targets)
    inputs, targets = sample(text, rng)
    print(f"{float(jax.jit(loss_fn)(params, inputs, targets)):.2f}")


if __name__ == "__main__":
    main()
