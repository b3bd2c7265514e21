# may: JX303
# a factor is a NumPy number: in double precision the step returns its parameters in another type
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np

TIMES = np.linspace(0.0, 4.0, 64, dtype="float32")


def loss(params, target):
    return jnp.mean((jnp.tanh(TIMES[:, None] * params["w"] + params["b"]).sum(1) - target) ** 2)


@jax.jit
def step(params, target):
    grads = jax.grad(loss)(params, target)
    return jax.tree.map(lambda p, g: p - 0.1 / np.sqrt(len(TIMES)) * g, params, grads)


params = {"w": jnp.ones(16, jnp.float32), "b": jnp.zeros(16, jnp.float32)}
for _ in range(20):
    params = step(params, np.exp(-TIMES))  # must: JX102 first ~ itself changes the dtype of params
print(params["w"].sum())
