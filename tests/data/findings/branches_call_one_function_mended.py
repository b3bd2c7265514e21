# the argument is selected, and the function called once
# applies: fix-select-arguments
import jax
import jax.numpy as jnp


def relax(x):
    return jax.lax.fori_loop(0, 3, lambda i, v: jnp.tanh(v @ v.T @ v / 50), x)


@jax.jit
def step(xs, flags):
    def one(x, flag):
        return relax(jnp.where(flag, x, 2 * x))

    return jax.vmap(one)(xs, flags)


xs = jax.random.normal(jax.random.key(0), (64, 40, 40))
flags = jnp.arange(64) % 2 == 0
for _ in range(40):
    y = step(xs, flags)
print(y.sum())
