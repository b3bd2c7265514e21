# Mended: the mean of all points, with the mask as weights
# applies: fix-where-for-mask
# may: JX133 note
import jax
import jax.numpy as jnp

CLUSTERS = 5


def fit(x, centers, iterations):
    for _ in range(iterations):
        distances = jnp.linalg.norm(x[:, None] - centers[None], axis=-1)
        labels = jnp.argmin(distances, axis=1)
        centers = jnp.stack([x.mean(axis=0, where=(labels == k)[:, None]) for k in range(CLUSTERS)])
    return centers


x = jax.random.normal(jax.random.key(0), (3000, 2))
print(fit(x, x[:CLUSTERS], 10))
