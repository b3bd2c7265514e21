# a data set of small tasks: each batch is joined with jnp.stack from NumPy arrays
import jax
import jax.numpy as jnp
import numpy as np

TASKS, SHOTS = 25, 5


def sample(rng):
    phase, height = rng.uniform(0, np.pi), rng.uniform(0.1, 5.0)
    x = rng.uniform(-5, 5, (SHOTS, 1)).astype(np.float32)
    return x, (height * np.sin(x + phase)).astype(np.float32)


ALL = [sample(np.random.default_rng(n)) for n in range(500)]


def get_batch(rng):
    xs, ys = zip(*(ALL[i] for i in rng.integers(0, len(ALL), TASKS)))
    return jnp.stack(xs), jnp.stack(ys)  # must: JX605 first ~ in operations outside jit


def loss_fn(params, x, y):
    hidden = jnp.tanh(jnp.sin(x) @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


@jax.jit
def step(params, xs, ys):
    grads = jax.grad(lambda p: jnp.mean(jax.vmap(loss_fn, (None, 0, 0))(p, xs, ys)))(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


rng = np.random.default_rng(0)
params = jax.device_put({
    "w1": rng.normal(size=(1, 512)).astype(np.float32),
    "b1": np.zeros(512, np.float32),
    "w2": rng.normal(size=(512, 1)).astype(np.float32) * 0.1,
})
for n in range(400):
    xs, ys = get_batch(rng)
    params = step(params, xs, ys)
print(float(jnp.abs(params["w2"]).max()))
