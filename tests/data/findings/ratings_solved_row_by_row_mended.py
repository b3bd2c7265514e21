# Mended: one row is a jitted function; jnp.nonzero has the largest size, and the padding has weight 0
# applies: fix-size-by-values, minus-one-is-padding, fix-jit-step
import jax
import jax.numpy as jnp
import numpy as np

USERS, ITEMS, FACTORS = 40, 30, 4
rng = np.random.default_rng(1)
ratings = jnp.array(rng.random((USERS, ITEMS)) * (rng.random((USERS, ITEMS)) < 0.3))


@jax.jit
def solved(factors, others, ratings, row):
    rated = jnp.nonzero(ratings[row], size=ratings.shape[1], fill_value=-1)[0]
    used = jnp.where((rated >= 0)[:, None], others[rated], 0.0)
    normal = used.T @ used + 0.1 * jnp.eye(FACTORS)
    return factors.at[row].set(jnp.linalg.solve(normal, used.T @ ratings[row, rated]))


def update(factors, others, ratings):
    for row in range(factors.shape[0]):
        factors = solved(factors, others, ratings, row)
    return factors


key_users, key_items = jax.random.split(jax.random.key(0))
users = jax.random.normal(key_users, (USERS, FACTORS))
items = jax.random.normal(key_items, (ITEMS, FACTORS))
for epoch in range(2):
    users = update(users, items, ratings)
    items = update(items, users, ratings.T)
print(float(jnp.abs(users @ items.T - ratings).mean()))
