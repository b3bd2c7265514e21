# jaxopt minimizes a loss whose model applies 14 layers in a Python loop: the solver's programs contain them all
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

rng = np.random.default_rng(0)
layers = [jnp.asarray(rng.normal(size=(12, 12)) * 0.3, jnp.float32) for _ in range(14)]


def model(x):
    for w in layers:
        x = x + 0.1 * jnp.tanh(x @ w) * jax.nn.sigmoid(x)  # must: JX202 first ~ unrolled a Python loop in model, which LBFGS\.update calls
    return x


def loss(x, target):
    return jnp.mean((model(x) - target) ** 2)


target = jnp.asarray(rng.normal(size=(8, 12)), jnp.float32)
solver = jaxopt.LBFGS(fun=loss, maxiter=40)
state = solver.run(jnp.zeros((8, 12)), target).state
print(f"{float(state.value):.3f}")
