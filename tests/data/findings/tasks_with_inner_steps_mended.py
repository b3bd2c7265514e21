# applies: fix-vmap-without-sums
import jax
import jax.numpy as jnp
import numpy as np


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def adapted(params, x, y):
    for _ in range(3):
        gradients = jax.grad(loss)(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients)
    return params


def of_tasks(params, tasks):
    def of_task(x, y, x_test, y_test):
        return loss(adapted(params, x, y), x_test, y_test)

    return jax.vmap(of_task)(*tasks).mean()


@jax.jit
def step(params, tasks):
    gradients = jax.grad(of_tasks)(params, tasks)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)


rng = np.random.default_rng(0)
sizes = [(1, 20), (20, 20), (20, 1)]
params = [(rng.normal(0, 0.3, s).astype("float32"), np.zeros(s[1], "float32")) for s in sizes]
for _ in range(5):
    params = step(params, [rng.normal(size=(16, 10, 1)).astype("float32") for _ in range(4)])
print(params[0][1].sum())
