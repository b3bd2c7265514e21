# alternating least squares: the rated items of each user are found with jnp.nonzero, outside jit
# never: JX101
import jax
import jax.numpy as jnp
import numpy as np

USERS, ITEMS, FACTORS = 40, 30, 4
rng = np.random.default_rng(1)
ratings = jnp.array(rng.random((USERS, ITEMS)) * (rng.random((USERS, ITEMS)) < 0.3))


def update(factors, others, ratings):
    for row in range(factors.shape[0]):
        rated = jnp.nonzero(ratings[row])[0]  # must: JX133 first ~ pass size=N, fill_value=-1 to jnp\.nonzero\(ratings\[row\]\)
        used = others[rated]
        normal = used.T @ used + 0.1 * jnp.eye(FACTORS)
        factors = factors.at[row].set(jnp.linalg.solve(normal, used.T @ ratings[row, rated]))
    return factors


key_users, key_items = jax.random.split(jax.random.key(0))
users = jax.random.normal(key_users, (USERS, FACTORS))
items = jax.random.normal(key_items, (ITEMS, FACTORS))
for epoch in range(2):
    users = update(users, items, ratings)
    items = update(items, users, ratings.T)
print(float(jnp.abs(users @ items.T - ratings).mean()))
