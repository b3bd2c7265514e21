# Mended: data of one size, with a mask, and a sampler that runs in one jitted function
# applies: fix-jit-around-run
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(x, y, mask):
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    s = numpyro.sample("s", dist.HalfNormal(1))
    with numpyro.handlers.mask(mask=mask):
        numpyro.sample("obs", dist.Normal(a + b * x, s), obs=y)


@jax.jit
def infer(key, x, y, mask):
    mcmc = MCMC(NUTS(model), num_warmup=50, num_samples=50, progress_bar=False)
    mcmc.run(key, x, y, mask)
    return mcmc.get_samples()


for n in (50, 60, 70):
    x = np.zeros(70)
    x[:n] = np.linspace(0, 1, n)
    y = 1 + 2 * x + 0.1 * np.random.normal(size=70)
    samples = infer(jax.random.PRNGKey(0), x, y, np.arange(70) < n)
    print(n, {k: float(v.mean()) for k, v in samples.items()})
