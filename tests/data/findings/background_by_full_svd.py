# robust PCA of a short video: the decomposition computes all 2,400 left singular vectors, of which 48 are used
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
frames = rng.normal(size=(2400, 2)) @ rng.normal(size=(2, 48)) + 5 * (rng.uniform(size=(2400, 48)) < 0.05)


def shrunk(x, threshold):
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - threshold, 0.0)


@jax.jit
def step(low, sparse, dual, data):
    u, s, vt = jnp.linalg.svd(data - sparse + dual)  # must: JX211 first ~ computes singular vectors that nothing reads
    s = jnp.maximum(s - 20.0, 0.0)
    low = (u[:, : len(s)] * s) @ vt
    sparse = shrunk(data - low + dual, 0.5)
    dual = dual + data - low - sparse
    return low, sparse, dual, (s > 0).sum()


data = jnp.asarray(frames.astype("f4"))
low = sparse = dual = jnp.zeros_like(data)
for _ in range(8):
    low, sparse, dual, rank = step(low, sparse, dual, data)
print(rank, f"{jnp.abs(data - low - sparse).mean():.4f}")
