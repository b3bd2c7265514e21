"""One jitted function is used for two stages on two devices: it is compiled once for each device, and one
array is copied to the second device in every call.
"""

import jax
import jax.numpy as jnp

import jaxscope

jax.config.update("jax_num_cpu_devices", 2)
FIRST, SECOND = jax.devices()


@jaxscope.watch
@jax.jit
def stage(w, scale, x):
    return jnp.tanh(x @ w) * scale


def main():
    ws = [jax.device_put(jnp.ones((256, 256)) / 256, device) for device in (FIRST, SECOND)]
    scale = jnp.ones((256, 256))  # on the first device, whatever the stage
    x = jax.device_put(jnp.ones((256, 256)), FIRST)
    for _ in range(12):
        hidden = stage(ws[0], scale, x)
        y = stage(ws[1], scale, jax.device_put(hidden, SECOND))  # JX117 JX511
    print(f"mean {y.mean():.3f}")


if __name__ == "__main__":
    main()
