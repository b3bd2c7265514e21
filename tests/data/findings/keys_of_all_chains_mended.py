# Mended: the keys stay in one array
# applies: fix-split-twice
import jax
import jax.numpy as jnp

CHAINS = 400


@jax.jit
def walk(keys, x):
    def one(key, x):
        return x + 0.1 * jax.random.normal(key, x.shape)

    return jax.vmap(one)(keys, x)


key = jax.random.PRNGKey(0)
key, new = jax.random.split(key)
keys = jax.random.split(new, CHAINS)
x = walk(keys, jnp.zeros((CHAINS, 8)))
for step in range(20):
    key, new = jax.random.split(key)
    keys = jax.random.split(new, CHAINS)
    x = walk(keys, x)
print(x.mean())
