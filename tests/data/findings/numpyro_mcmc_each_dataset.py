# numpyro: a sampler made for each data set of the same size
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


rng = np.random.default_rng(0)
for i in range(3):
    mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(i), rng.normal(size=50).astype("float32"))  # must: JX133 first ~ apply jax.jit to this function
    print(mcmc.get_samples()["mu"].mean())
