# An agent explores at random; the key from which it has drawn its action decides whether it explores next
# may: JX601
import jax
import jax.numpy as jnp


@jax.jit
def act(key, values):
    explore = jax.random.uniform(key) < 0.2
    key, subkey = jax.random.split(key)
    best = values == values.max()
    action = jax.lax.cond(  # must: JX137 first ~ act draws from subkey .* and then returns it
        explore,
        lambda k: jax.random.randint(k, (), 0, 4),
        lambda k: jax.random.choice(k, 4, p=best / best.sum()),
        subkey,
    )
    return action, subkey


@jax.jit
def learn(values, action):
    return values.at[action].add(0.1 * (jnp.cos(action) - values[action]))


key, values = jax.random.PRNGKey(0), jnp.zeros(4)
for _ in range(300):
    action, key = act(key, values)
    values = learn(values, action)
print(values)
