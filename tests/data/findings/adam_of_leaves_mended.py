# applies: fix-jit-step
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
SHAPES = [(3, 5), (7,), (4, 9), (11,), (6, 2), (13,), (8, 8), (10,)]
params = [rng.normal(size=s).astype("float32") for s in SHAPES]
first, second = ([np.zeros(s, np.float32) for s in SHAPES] for _ in range(2))


def adam(gradient, x, m, v):
    m = 0.1 * gradient + 0.9 * m
    v = 0.01 * jnp.square(gradient) + 0.99 * v
    return x - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


gradients_of = jax.jit(jax.grad(lambda params: sum(jnp.sum(p**2) for p in params)))
@jax.jit
def step(params, first, second):
    changed = [adam(*each) for each in zip(gradients_of(params), params, first, second)]
    return tuple(map(list, zip(*changed)))


def loop(params, first, second):
    for _ in range(30):
        params, first, second = step(params, first, second)
    return params


print(loop(params, first, second)[0].sum())
