# jax_enable_x64 is set for 64-bit ids; a NumPy scalar then makes the loss of a float32 model float64
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
SCALE = 1 / np.sqrt(32)


@jax.jit
def create(key):
    return {
        "table": jax.random.normal(key, (1000, 32), "float32"),
        "out": jax.random.normal(jax.random.fold_in(key, 1), (32, 8), "float32"),
    }


@jax.jit
def step(params, ids):
    def loss(params):
        x = params["table"][ids % 1000] * SCALE  # must: JX303 first ~ convert the float64 number or array on this line to float32
        return jnp.mean(jnp.tanh(x @ params["out"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


params = create(jax.random.key(0))
for i in range(5):
    params, value = step(params, np.arange(i, i + 64) * 2**33)
print(value)
