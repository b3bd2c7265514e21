# Variational inference for a model that makes its sites in a Python loop
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

x = np.random.default_rng(0).normal(size=(16, 30)).astype(np.float32)


def model(x):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    for i in range(len(x)):  # must: JX202 first ~ numpyro.plate
        z = numpyro.sample(f"z_{i}", dist.Normal(mu, 1.0))
        numpyro.sample(f"x_{i}", dist.Normal(z, 1.0), obs=x[i])


svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
result = svi.run(jax.random.key(0), 200, x, progress_bar=False)
print(result.losses.shape)
