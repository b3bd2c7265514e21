# Mended: the sampler runs in one jitted function
# applies: fix-jit-around-run
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


@jax.jit
def infer(key, y):
    mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    mcmc.run(key, y)
    return mcmc.get_samples()


rng = np.random.default_rng(0)
for i in range(3):
    print(infer(jax.random.PRNGKey(i), rng.normal(size=50).astype("float32"))["mu"].mean())
