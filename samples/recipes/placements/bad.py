"""Equal arrays are placed differently on one device: committed or not, with another order of the axes, in
another memory. JAX compiles a program for each placement.
"""

import jax
import jax.numpy as jnp
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding


@jax.jit
def predict(w, x):
    return jnp.tanh(x @ w)


@jax.jit
def norm(w):
    return jnp.sqrt(jnp.sum(w**2))


@jax.jit
def rows(x):
    return jnp.sum(x**2, axis=1)


def main():
    device = jax.devices()[0]
    w, x = jnp.ones((64, 32)), jnp.ones((16, 64))
    here = SingleDeviceSharding(device)
    kinds = [m.kind for m in device.addressable_memories()]
    for order in (0, 1), (1, 0):
        y = predict(jax.device_put(w, Format(Layout(order), here)), x)  # JX118
    for kind in kinds[:2]:
        length = norm(jax.device_put(w, SingleDeviceSharding(device, memory_kind=kind)))  # JX119
    for batch in x, jax.device_put(x, device):
        sums = rows(batch)  # JX116
    print(f"mean {y.mean():.3f}, {sums.mean():.3f}, norm {length:.3f}")


if __name__ == "__main__":
    main()
