# Mended: the information matrix is one matrix product
# applies: fix-sum-as-product
import jax
import jax.numpy as jnp
import numpy as np

ROWS, COLUMNS = 1500, 160


@jax.jit
def newton(beta, x, y):
    p = jax.nn.sigmoid(x @ beta)
    weight = p * (1 - p)
    information = (x * weight[:, None]).T @ x
    gradient = x.T @ (y - p) - 1e-2 * beta
    return beta + jnp.linalg.solve(information + 1e-2 * jnp.eye(COLUMNS), gradient)


rng = np.random.default_rng(0)
x = jnp.asarray(rng.normal(size=(ROWS, COLUMNS)) / np.sqrt(COLUMNS), jnp.float32)
truth = rng.normal(size=COLUMNS) * 2
y = jnp.asarray(rng.random(ROWS) < 1 / (1 + np.exp(-np.asarray(x) @ truth)), jnp.float32)
beta = jnp.zeros(COLUMNS)
for step in range(12):
    beta = newton(beta, x, y)
print(f"{float(jnp.linalg.norm(beta)):.3f}")
