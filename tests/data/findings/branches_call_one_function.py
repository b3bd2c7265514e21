# under vmap, both branches of a cond run: they call the same function with other arguments
import jax
import jax.numpy as jnp


def relax(x):
    return jax.lax.fori_loop(0, 3, lambda i, v: jnp.tanh(v @ v.T @ v / 50), x)


@jax.jit
def step(xs, flags):
    def one(x, flag):
        return jax.lax.cond(flag, lambda x: relax(x), lambda x: relax(2 * x), x)  # must: JX206 first ~ Its 2 branches all call relax.*jnp.where

    return jax.vmap(one)(xs, flags)


xs = jax.random.normal(jax.random.key(0), (64, 40, 40))
flags = jnp.arange(64) % 2 == 0
for _ in range(40):
    y = step(xs, flags)
print(y.sum())
