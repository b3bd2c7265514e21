# Mended: the update is jitted
# applies: fix-jit-method
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
y = jnp.ones(50)
state = jax.jit(svi.init)(jax.random.PRNGKey(0), y)
update = jax.jit(svi.update)
for _ in range(15):
    state, loss = update(state, y)
print(loss)
