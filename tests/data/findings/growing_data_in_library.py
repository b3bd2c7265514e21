# data grow by a row in each round, all through library functions and eager operations; no function of the user's is jitted
# never: negative
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoDelta


def model(x, y):
    s = numpyro.sample("s", dist.LogNormal(0.0, 1.0))
    k = jnp.exp(-((x[:, None] - x) ** 2) / s) + 1e-3 * jnp.eye(x.shape[0])
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(x.shape[0]), k), obs=y)


x = jnp.linspace(0, 1, 4)
y = jnp.sin(x)
for i in range(5):
    svi = SVI(model, AutoDelta(model), numpyro.optim.Adam(0.01), Trace_ELBO(), x=x, y=y)
    p = svi.run(jax.random.PRNGKey(0), 20, progress_bar=False).params  # must: JX133 first
    x = jnp.append(x, x[-1] + 0.1)
    y = jnp.append(y, jnp.sin(x[-1]))
print(p)
