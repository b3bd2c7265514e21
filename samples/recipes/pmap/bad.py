"""The training uses pmap, but all its arrays are created without a sharding: each call splits the batch again."""

# jaxscope run --no-arrays bad.py

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_num_cpu_devices", 8)


@partial(jax.pmap, axis_name="data", donate_argnums=0)
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * jax.lax.pmean(gradient, "data")


def main():
    n = jax.local_device_count()
    w = np.ones((n, 512, 64), "float32")
    for _ in range(6):
        batch = jnp.ones((n, 256, 512))
        w = train_step(w, batch)  # JX120 JX508
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
