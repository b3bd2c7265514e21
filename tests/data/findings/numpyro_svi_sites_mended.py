# applies: fix-plate
# Variational inference for a model that makes its sites in one plate
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

x = np.random.default_rng(0).normal(size=(16, 30)).astype(np.float32)


def model(x):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(x)):
        z = numpyro.sample("z", dist.Normal(mu, 1.0))
        numpyro.sample("x", dist.Normal(z[:, None], 1.0).to_event(1), obs=x)


svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
result = svi.run(jax.random.key(0), 200, x, progress_bar=False)
print(result.losses.shape)
