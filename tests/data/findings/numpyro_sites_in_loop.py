# A hierarchical model makes its sites in a Python loop over groups of different sizes
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

rng = np.random.default_rng(0)
groups = [rng.normal(rng.normal(), 0.5, size=5 + 2 * k).astype(np.float32) for k in range(14)]


def schools(groups):
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    for j, scores in enumerate(groups):  # must: JX202 first ~ numpyro.plate
        theta = numpyro.sample(f"theta_{j}", dist.Normal(mu, tau))
        with numpyro.plate(f"pupils_{j}", len(scores)):
            numpyro.sample(f"score_{j}", dist.Normal(theta, sigma), obs=jnp.asarray(scores))


mcmc = MCMC(NUTS(schools), num_warmup=50, num_samples=50, progress_bar=False)
mcmc.run(jax.random.key(0), groups)
print(mcmc.get_samples()["mu"].shape)
