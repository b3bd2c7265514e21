# the error of each batch in a jitted function of its own, after the step
import jax
import jax.numpy as jnp
import numpy as np


def predict(params, x):
    return jnp.tanh(x @ params["a"]) @ params["b"]


@jax.jit
def train_step(params, x, y):
    gradient = jax.grad(lambda p: ((predict(p, x) - y) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient)


@jax.jit
def error(params, x, y):
    return jnp.abs(predict(params, x) - y).mean()


random = np.random.default_rng(0)
params = {"a": random.normal(size=(32, 64)), "b": random.normal(size=(64, 4))}
params = jax.tree.map(lambda p: jnp.asarray(p, jnp.float32), params)
batches = random.normal(size=(5, 256, 36)).astype("float32")
errors = []
for batch in batches:
    x, y = batch[:, :32], batch[:, 32:]
    params = train_step(params, x, y)
    errors.append(error(params, x, y))  # must: JX205 note ~ computed with the parameters before the update
print(np.asarray(errors))
