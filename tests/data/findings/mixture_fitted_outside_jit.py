# expectation maximization for 2 to 5 clusters: each iteration runs operation by operation, for other sizes
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
data = jnp.array(np.concatenate([rng.normal(m, 1, (200, 2)) for m in (0, 5, 10)]), "float32")


def fit(data, clusters):
    means = data[:: len(data) // clusters][:clusters]
    scales, weights, old = jnp.ones((clusters, 2)), jnp.ones(clusters) / clusters, -jnp.inf
    for _ in range(60):
        logs = jnp.stack([jnp.log(weights[k]) - jnp.log(scales[k]).sum() - 0.5 * (((data - means[k]) / scales[k]) ** 2).sum(1) for k in range(clusters)], 1)  # must: JX605|JX133 first ~ (compiling|running) these operations took.*leave .abs.* outside of it
        total = jax.nn.logsumexp(logs, axis=1).sum()
        shares = jax.nn.softmax(logs, axis=1)
        counts = shares.sum(0)
        means = (shares.T @ data) / counts[:, None]
        scales = jnp.sqrt(jnp.stack([shares[:, k] @ (data - means[k]) ** 2 / counts[k] + 1e-3 for k in range(clusters)]))
        weights = counts / counts.sum()
        if abs(total - old) < 1e-3:
            break
        old = total
    return total


for clusters in range(2, 6):
    print(clusters, fit(data, clusters))
