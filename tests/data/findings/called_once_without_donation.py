# weights are converted once: donating them would save 64 MiB for a moment, and nothing in the training
import jax
import jax.numpy as jnp


@jax.jit
def scaled(w):
    return w * 0.01


@jax.jit
def predict(w, x):
    return jnp.tanh(x @ w).sum()


weights = scaled(jnp.ones((4096, 4096)))
for i in range(5):
    print(predict(weights, jnp.full((8, 4096), 0.1 * i)))
