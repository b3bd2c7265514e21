# numpyro: two models, each sampled once by one helper: nothing is compiled twice for nothing
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def centered(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def scaled(y):
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(0, sigma), obs=y)


def infer(model, y):
    mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), y)
    return mcmc.get_samples()


def main():
    y = jnp.ones(50)
    print(infer(centered, y)["mu"].mean())
    print(infer(scaled, y)["sigma"].mean())


if __name__ == "__main__":
    main()
