"""NumPyro: the eight schools model, sampled with a short run of NUTS."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from numpyro.infer.reparam import TransformReparam

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with (
        numpyro.plate("schools", len(sigma)),
        numpyro.handlers.reparam(config={"theta": TransformReparam()}),
    ):
        theta = numpyro.sample(
            "theta",
            dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mu, tau)),
        )
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def main():
    mcmc = MCMC(NUTS(eight_schools), num_warmup=50, num_samples=50, progress_bar=False)
    mcmc.run(jax.random.key(0), SIGMA, y=Y)
    samples = mcmc.get_samples()
    shapes = {name: tuple(map(int, value.shape)) for name, value in sorted(samples.items())}
    print(f"numpyro: {shapes} mu in range {bool(-10 < samples['mu'].mean() < 15)}")


if __name__ == "__main__":
    main()
