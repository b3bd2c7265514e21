"""Each stage is a function of its own with its own arrays, and only the activations move."""

import jax
import jax.numpy as jnp

import jaxscope

jax.config.update("jax_num_cpu_devices", 2)
FIRST, SECOND = jax.devices()


@jaxscope.watch
@jax.jit
def first_stage(w, scale, x):
    return jnp.tanh(x @ w) * scale


@jaxscope.watch
@jax.jit
def second_stage(w, scale, x):
    return jnp.tanh(x @ w) * scale


def main():
    w1, w2 = (jax.device_put(jnp.ones((256, 256)) / 256, device) for device in (FIRST, SECOND))
    scale1, scale2 = (jax.device_put(jnp.ones((256, 256)), device) for device in (FIRST, SECOND))
    x = jax.device_put(jnp.ones((256, 256)), FIRST)
    for _ in range(12):
        hidden = first_stage(w1, scale1, x)
        y = second_stage(w2, scale2, jax.device_put(hidden, SECOND))
    print(f"mean {y.mean():.3f}")


if __name__ == "__main__":
    main()
