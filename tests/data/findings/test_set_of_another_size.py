# a jitted loss that the jitted update differentiates, too, is called for a training and a test set of two sizes
# never: JX101
# may: JX601 note
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def loss(w, problem):
    x, y = problem
    return jnp.mean((x @ w - y) ** 2)


@jax.jit
def update(w, problem):
    return w - 0.1 * jax.grad(loss)(w, problem)


def draw(rng, n):
    x = rng.normal(size=(n, 8)).astype("float32")
    return x, x.sum(axis=1)


rng = np.random.default_rng(0)
w = jnp.zeros(8)
for step in range(200):
    w = update(w, draw(rng, 121))
    if step % 50 == 0:
        train = np.mean([loss(w, draw(rng, 121)) for _ in range(5)])
        test = np.mean([loss(w, draw(rng, 211)) for _ in range(5)])
        print(step, float(train), float(test))
