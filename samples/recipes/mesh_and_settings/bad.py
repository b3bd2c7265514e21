"""A warm-up call is made outside the mesh, one call with another precision, and one with a sharding that is
written differently: each of them misses a cache.
"""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


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
    x = jax.device_put(jnp.ones((64, 16)), NamedSharding(mesh, P("data")))
    w = jax.device_put(jnp.ones((16, 4)), NamedSharding(mesh, P()))
    train_step(w, x)  # "to warm up"
    with jax.set_mesh(mesh):
        for _ in range(4):
            w = train_step(w, x)  # JX120
    error = evaluate(w, x)
    with jax.default_matmul_precision("float32"):
        error = evaluate(w, x)  # JX121
    for spec in P("data"), P("data", None), P("data", None, None):
        value = mean(jax.device_put(jnp.ones((64, 4, 4)), NamedSharding(mesh, spec)))  # JX124
    print(f"error {error:.3f}, mean {value:.3f}")


if __name__ == "__main__":
    main()
