# Adam written out: a Python loop over the leaves of a model, outside jit
# may: JX605, JX133 note
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
SHAPES = [(3, 5), (7,), (4, 9), (11,), (6, 2), (13,), (8, 8), (10,)]
params = [jnp.asarray(rng.normal(size=s), jnp.float32) for s in SHAPES]
first, second = ([np.zeros(s, np.float32) for s in SHAPES] for _ in range(2))


def adam(gradient, x, m, v):
    m = 0.1 * gradient + 0.9 * m  # must: JX133|JX605 first ~ what line 22 computes in each iteration of the loop at adam_of_leaves.py:20
    v = 0.01 * jnp.square(gradient) + 0.99 * v
    return x - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


gradients_of = jax.jit(jax.grad(lambda params: sum(jnp.sum(p**2) for p in params)))
for _ in range(30):
    gradients = gradients_of(params)
    changed = [adam(*each) for each in zip(gradients, params, first, second)]
    params, first, second = map(list, zip(*changed))
print(params[0].sum())
