"""Arrays that are kept elsewhere are moved to one place and one layout before a program gets them."""

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
    here = Format(Layout((0, 1)), SingleDeviceSharding(device))
    other = [m.kind for m in device.addressable_memories()][1]
    kept = jax.device_put(w, SingleDeviceSharding(device, memory_kind=other))
    for _ in range(2):
        y = predict(jax.device_put(w, here), x)
    for _ in range(2):
        length = norm(jax.device_put(kept, SingleDeviceSharding(device)))
    for _ in range(2):
        sums = rows(jax.device_put(x, device))
    print(f"mean {y.mean():.3f}, {sums.mean():.3f}, norm {length:.3f}")


if __name__ == "__main__":
    main()
