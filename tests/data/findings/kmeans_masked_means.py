# k-means: the mean of each cluster selects its points with a mask, another number of them in each iteration
import jax
import jax.numpy as jnp

CLUSTERS = 5


def fit(x, centers, iterations):
    for _ in range(iterations):
        distances = jnp.linalg.norm(x[:, None] - centers[None], axis=-1)
        labels = jnp.argmin(distances, axis=1)
        centers = jnp.stack([x[labels == k].mean(axis=0) for k in range(CLUSTERS)])  # must: JX133 first ~ where=
    return centers


x = jax.random.normal(jax.random.key(0), (3000, 2))
print(fit(x, x[:CLUSTERS], 10))
