# equinox error checks: a callback in a branch that never runs
import equinox as eqx
import jax
import jax.numpy as jnp


@jax.jit
def f(x):
    x = eqx.error_if(x, x < 0, "negative")
    y = eqx.error_if(x * 2, x > 1e9, "large")
    return jnp.sqrt(y)


for _ in range(3):
    print(f(jnp.float32(2)))
