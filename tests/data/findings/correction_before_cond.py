# a filter: the inverse for the rare correction is computed in each step, before the cond that decides about it
import jax
import jax.numpy as jnp
import numpy as np

N = 250


@jax.jit
def step(mean, cov, noise, i):
    cov = 0.98 * cov + 0.02 * jnp.eye(N) + 1e-3 * jnp.outer(noise, noise)
    gain = jnp.linalg.solve(cov + jnp.eye(N), cov)  # measured every twentieth step only
    corrected = mean + gain @ (noise - mean), cov - gain @ cov
    return jax.lax.cond(i % 20 == 0, lambda: corrected, lambda: (mean, cov))  # must: JX212 first ~ in step, .* of the operations \(lines? .*\) compute what only one branch


rng = np.random.default_rng(0)
mean, cov = jnp.zeros(N), jnp.eye(N)
for i in range(200):
    mean, cov = step(mean, cov, jnp.asarray(rng.normal(size=N), jnp.float32), i)
print(f"{cov.trace():.3f}")
