# A mixed model makes its sites in a list comprehension
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

x = np.random.default_rng(0).normal(size=(24, 30)).astype(np.float32)


def model(x):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    z = [numpyro.sample(f"z_{i}", dist.Normal(mu, 1.0)) for i in range(len(x))]  # must: JX202 first ~ numpyro.plate
    for i, zi in enumerate(z):
        numpyro.sample(f"x_{i}", dist.Normal(zi, 1.0), obs=x[i])


mcmc = MCMC(NUTS(model), num_warmup=60, num_samples=60, progress_bar=False)
mcmc.run(jax.random.key(0), x)
print(mcmc.get_samples()["mu"].shape)
