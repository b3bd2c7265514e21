# two models of numpyro are run by one line of a helper: each has a program of its own, and nothing is compiled again
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

rng = np.random.default_rng(0)
x = rng.normal(size=60).astype(np.float32)
y = (1.5 * x + 0.3 + 0.2 * rng.normal(size=60)).astype(np.float32)


def line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    numpyro.sample("y", dist.Normal(slope * x, 0.3), obs=y)


def curve(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    bend = numpyro.sample("bend", dist.Normal(0.0, 1.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(slope * x + bend * x**2, noise), obs=y)


def fit(model, key):
    mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=200, progress_bar=False)
    mcmc.run(key, x, y)
    return mcmc.get_samples()


for n, model in enumerate((line, curve)):
    samples = fit(model, jax.random.key(n))
    print(model.__name__, {name: f"{float(jnp.mean(v)):.2f}" for name, v in samples.items()})
