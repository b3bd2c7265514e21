"""The mesh and the precision are set once, before the first call, and all calls use one sharding object."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_default_matmul_precision", "float32")
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
jax.set_mesh(mesh)
BY_ROWS = NamedSharding(mesh, P("data"))


@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


@jax.jit
def evaluate(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


@jax.jit
def mean(x):
    return x.mean()


def main():
    x = jax.device_put(jnp.ones((64, 16)), BY_ROWS)
    w = jax.device_put(jnp.ones((16, 4)), NamedSharding(mesh, P()))
    for _ in range(4):
        w = train_step(w, x)
    error = evaluate(w, x)
    for _ in range(4):
        value = mean(jax.device_put(jnp.ones((64, 4, 4)), BY_ROWS))
    print(f"error {error:.3f}, mean {value:.3f}")


if __name__ == "__main__":
    main()
