# Mended: the statistic is jitted, and computes the squared distances with a matrix product
# applies: fix-reduce-in-jit
import jax
import jax.numpy as jnp
import numpy as np

ROWS, COLUMNS = 1400, 20


def kernel_mean(x, y):
    squared = jnp.maximum((x**2).sum(-1)[:, None] + (y**2).sum(-1) - 2 * x @ y.T, 0)
    return jnp.exp(-squared / (2 * COLUMNS)).mean()


@jax.jit
def statistic(x, y):
    return kernel_mean(x, x) + kernel_mean(y, y) - 2 * kernel_mean(x, y)


rng = np.random.default_rng(0)
x = jnp.asarray(rng.normal(size=(ROWS, COLUMNS)), jnp.float32)
y = jnp.asarray(rng.normal(size=(ROWS, COLUMNS)) * 1.05, jnp.float32)
both = jnp.concatenate([x, y])
observed = float(statistic(x, y))
larger = 0
for _ in range(12):
    mixed = both[rng.permutation(2 * ROWS)]
    larger += float(statistic(mixed[:ROWS], mixed[ROWS:])) >= observed
print(f"{observed:.5f} p = {(larger + 1) / 13:.2f}")
