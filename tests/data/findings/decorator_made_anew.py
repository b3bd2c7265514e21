# never: check_two
import jax
import jax.numpy as jnp


def check_one(n):
    @jax.jit
    @jax.value_and_grad
    def run(x):
        return (x * n).sum()

    return run(jnp.ones(3))  # must: JX110


def check_two():
    @jax.jit
    def run(x):
        return x

    vag = jax.value_and_grad(run)
    return run


for n in range(3):
    check_one(n)
