# applies: fix-plate
# A hierarchical model makes all groups in one plate
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

rng = np.random.default_rng(0)
groups = [rng.normal(rng.normal(), 0.5, size=5 + 2 * k).astype(np.float32) for k in range(14)]


def schools(scores, group, n):
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("schools", n):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    with numpyro.plate("pupils", len(scores)):
        numpyro.sample("score", dist.Normal(theta[group], sigma), obs=scores)


scores = jnp.asarray(np.concatenate(groups))
group = jnp.asarray(np.repeat(np.arange(len(groups)), [len(g) for g in groups]))
mcmc = MCMC(NUTS(schools), num_warmup=50, num_samples=50, progress_bar=False)
mcmc.run(jax.random.key(0), scores, group, len(groups))
print(mcmc.get_samples()["mu"].shape)
