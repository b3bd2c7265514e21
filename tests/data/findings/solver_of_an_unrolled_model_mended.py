# Mended: the layers are stacked, and a scan applies them
# applies: fix-scan-over, scan-stack-first
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

rng = np.random.default_rng(0)
layers = jnp.stack([jnp.asarray(rng.normal(size=(12, 12)) * 0.3, jnp.float32) for _ in range(14)])


def layer(x, w):
    return x + 0.1 * jnp.tanh(x @ w) * jax.nn.sigmoid(x), None


def model(x):
    return jax.lax.scan(layer, x, layers)[0]


def loss(x, target):
    return jnp.mean((model(x) - target) ** 2)


target = jnp.asarray(rng.normal(size=(8, 12)), jnp.float32)
solver = jaxopt.LBFGS(fun=loss, maxiter=40)
state = solver.run(jnp.zeros((8, 12)), target).state
print(f"{float(state.value):.3f}")
