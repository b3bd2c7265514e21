# A state space model makes the states of a series in a Python loop
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

series = jnp.asarray(np.cumsum(np.random.default_rng(0).normal(size=30)).astype(np.float32))


def walk(series):
    drift = numpyro.sample("drift", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    state = numpyro.sample("first", dist.Normal(0.0, 5.0))
    for t in range(len(series)):  # must: JX202 first ~ control_flow.scan
        state = numpyro.sample(f"state_{t}", dist.Normal(state + drift, sigma))
        numpyro.sample(f"seen_{t}", dist.Normal(state, 0.3), obs=series[t])


mcmc = MCMC(NUTS(walk), num_warmup=30, num_samples=30, progress_bar=False)
mcmc.run(jax.random.key(0), series)
print(mcmc.get_samples()["drift"].shape)
