# applies: fix-define-and-wrap-once
import jax
import jax.numpy as jnp


@jax.jit
@jax.value_and_grad
def run(x, n):
    return (x * n).sum()


def check_one(n):
    return run(jnp.ones(3), n)


def check_two():
    @jax.jit
    def run(x):
        return x

    vag = jax.value_and_grad(run)
    return run


for n in range(3):
    check_one(n)
