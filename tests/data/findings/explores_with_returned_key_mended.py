# applies: fix-return-unused-key
# An agent explores at random; the returned key has not been drawn from
# may: JX601
import jax
import jax.numpy as jnp


@jax.jit
def act(key, values):
    key, subkey1, subkey2 = jax.random.split(key, 3)
    explore = jax.random.uniform(subkey1) < 0.2
    best = values == values.max()
    action = jax.lax.cond(
        explore,
        lambda k: jax.random.randint(k, (), 0, 4),
        lambda k: jax.random.choice(k, 4, p=best / best.sum()),
        subkey2,
    )
    return action, key


@jax.jit
def learn(values, action):
    return values.at[action].add(0.1 * (jnp.cos(action) - values[action]))


key, values = jax.random.PRNGKey(0), jnp.zeros(4)
for _ in range(300):
    action, key = act(key, values)
    values = learn(values, action)
print(values)
