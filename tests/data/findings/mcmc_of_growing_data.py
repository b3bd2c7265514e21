import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    s = numpyro.sample("s", dist.HalfNormal(1))
    numpyro.sample("obs", dist.Normal(a + b * x, s), obs=y)


for n in (50, 60, 70):
    x = np.linspace(0, 1, n)
    y = 1 + 2 * x + 0.1 * np.random.normal(size=n)
    mcmc = MCMC(NUTS(model), num_warmup=50, num_samples=50, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), x, y)  # must: JX133 first
    print(n, {k: float(v.mean()) for k, v in mcmc.get_samples().items()})
