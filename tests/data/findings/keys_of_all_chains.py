# a key for each chain, unpacked from a split into a list, and stacked again for vmap
import jax
import jax.numpy as jnp

CHAINS = 400


@jax.jit
def walk(keys, x):
    def one(key, x):
        return x + 0.1 * jax.random.normal(key, x.shape)

    return jax.vmap(one)(keys, x)


key = jax.random.PRNGKey(0)
key, *keys = jax.random.split(key, CHAINS + 1)  # must: JX133 first ~ keys = jax.random.split\(new, CHAINS\).*on line 20
x = walk(jnp.array(keys), jnp.zeros((CHAINS, 8)))
for step in range(20):
    key, *keys = jax.random.split(key, CHAINS + 1)
    x = walk(jnp.array(keys), x)
print(x.mean())
