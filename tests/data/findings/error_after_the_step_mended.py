# Mended: the step returns the error of the parameters that it receives
# applies: fix-has-aux
import jax
import jax.numpy as jnp
import numpy as np


def predict(params, x):
    return jnp.tanh(x @ params["a"]) @ params["b"]


def loss(params, x, y):
    difference = predict(params, x) - y
    return (difference**2).mean(), jnp.abs(difference).mean()


@jax.jit
def train_step(params, x, y):
    (_, error), gradient = jax.value_and_grad(loss, has_aux=True)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient), error


random = np.random.default_rng(0)
params = {"a": random.normal(size=(32, 64)), "b": random.normal(size=(64, 4))}
params = jax.tree.map(lambda p: jnp.asarray(p, jnp.float32), params)
batches = random.normal(size=(5, 256, 36)).astype("float32")
errors = []
for batch in batches:
    x, y = batch[:, :32], batch[:, 32:]
    params, error = train_step(params, x, y)
    errors.append(error)
print(np.asarray(errors))
