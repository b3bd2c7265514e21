# applies: fix-plate
# A mixed model makes its sites in one plate
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

x = np.random.default_rng(0).normal(size=(24, 30)).astype(np.float32)


def model(x):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(x)):
        z = numpyro.sample("z", dist.Normal(mu, 1.0))
        numpyro.sample("x", dist.Normal(z[:, None], 1.0).to_event(1), obs=x)


mcmc = MCMC(NUTS(model), num_warmup=60, num_samples=60, progress_bar=False)
mcmc.run(jax.random.key(0), x)
print(mcmc.get_samples()["mu"].shape)
