# An optimizer written by hand: jax.tree.map calls a jitted update for each parameter
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def loss_and_gradient(params, x, y):
    def loss(params):
        for w, b in zip(params["w"], params["b"], strict=True):
            x_ = jnp.tanh(inputs[-1] @ w + b)
            inputs.append(x_)
        return jnp.mean((inputs[-1] - y) ** 2)

    inputs = [x]
    return jax.value_and_grad(loss)(params)


@jax.jit
def update(p, m, g):
    m = 0.9 * m + g
    return p - 0.01 * m, m


sizes = [12, 48, 32, 20, 4]
rng = np.random.default_rng(0)
params = {
    "w": [jnp.asarray(rng.normal(size=s), jnp.float32) for s in zip(sizes, sizes[1:], strict=False)],
    "b": [jnp.zeros(n, jnp.float32) for n in sizes[1:]],
}
momentum = jax.tree.map(np.zeros_like, params)
x, y = rng.normal(size=(64, 12)).astype("float32"), rng.normal(size=(64, 4)).astype("float32")
for _ in range(20):
    loss, grads = loss_and_gradient(params, x, y)
    both = jax.tree.map(update, params, momentum, grads)  # must: JX101 first ~ Put the call of jax.tree.map into a jitted function
    params = jax.tree.map(lambda pair: pair[0], both, is_leaf=lambda n: isinstance(n, tuple))
    momentum = jax.tree.map(lambda pair: pair[1], both, is_leaf=lambda n: isinstance(n, tuple))
print(float(loss))
