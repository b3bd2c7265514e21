# an iteration is one jitted function, which computes all clusters together and is compiled once for each number of them
# applies: fix-inner-loop, fix-one-program-each-size, fix-returns-value, fix-jit-step, fix-loop-by-vmap
# may: JX101, JX601
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
data = jnp.array(np.concatenate([rng.normal(m, 1, (200, 2)) for m in (0, 5, 10)]), "float32")


@jax.jit
def iterate(data, means, scales, weights):
    def density(mean, scale, weight):
        return jnp.log(weight) - jnp.log(scale).sum() - 0.5 * (((data - mean) / scale) ** 2).sum(1)

    logs = jax.vmap(density, out_axes=1)(means, scales, weights)
    total = jax.nn.logsumexp(logs, axis=1).sum()
    shares = jax.nn.softmax(logs, axis=1)
    counts = shares.sum(0)
    means = (shares.T @ data) / counts[:, None]
    spread = jax.vmap(lambda share, mean, count: share @ (data - mean) ** 2 / count + 1e-3, in_axes=(1, 0, 0))
    return means, jnp.sqrt(spread(shares, means, counts)), counts / counts.sum(), total


def fit(data, clusters):
    means = data[:: len(data) // clusters][:clusters]
    scales, weights, old = jnp.ones((clusters, 2)), jnp.ones(clusters) / clusters, -jnp.inf
    for _ in range(60):
        means, scales, weights, total = iterate(data, means, scales, weights)
        if abs(total - old) < 1e-3:
            break
        old = total
    return total


for clusters in range(2, 6):
    print(clusters, fit(data, clusters))
