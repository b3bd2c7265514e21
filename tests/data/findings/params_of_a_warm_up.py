# the first of two calls, which compiles, keeps the parameters: the second, which is not recorded, reads them again
import jax
import jax.numpy as jnp


@jax.jit
def learn(params, keys):
    return params - 0.1 * jnp.tanh(params) + keys.mean(), keys + 1


def main():
    params = jnp.ones((2560, 2560))
    keys = jnp.ones(4)
    out = learn(params, keys)
    jax.block_until_ready(out)
    print("compiled")
    del out
    params, keys = learn(params, keys)
    params, keys = learn(params, keys)
    print(params.sum())


main()
