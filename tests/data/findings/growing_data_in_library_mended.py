# Mended: the data are padded to one size, with a mask, and the run is inside one jitted function
# applies: fix-jit-around-run
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoDelta


def model(x, y, known):
    s = numpyro.sample("s", dist.LogNormal(0.0, 1.0))
    both = known[:, None] & known
    k = jnp.where(both, jnp.exp(-((x[:, None] - x) ** 2) / s), 0.0) + jnp.eye(x.shape[0])
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(x.shape[0]), k), obs=y)


@jax.jit
def fit(key, x, y, known):
    svi = SVI(model, AutoDelta(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    return svi.run(key, 20, x, y, known, progress_bar=False).params


for n in (6, 7, 8):
    known = np.arange(8) < n
    x = np.where(known, np.linspace(0, 1, 8), 0).astype("float32")
    print(fit(jax.random.PRNGKey(0), x, np.sin(x), known))
