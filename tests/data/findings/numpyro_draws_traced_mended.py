# applies: fix-trace-draws
# may: JX133 note
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import Predictive

DOSES = [jnp.asarray(np.linspace(0, 1, n), jnp.float32) for n in (31, 17, 23, 40)]


def model(doses):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    for k, dose in enumerate(doses):
        start = numpyro.sample(f"start_{k}", dist.Normal(0.0, 1.0))
        with numpyro.plate(f"ward_{k}", len(dose)):
            numpyro.sample(f"seen_{k}", dist.Bernoulli(logits=start + slope * dose))


def predict(posterior, key):
    sites = jax.jit(Predictive(model, posterior, parallel=True))(key, DOSES)
    return jnp.concatenate([sites[f"seen_{k}"] for k in range(4)], axis=1)


rng = np.random.default_rng(0)
names = ["slope", *(f"start_{k}" for k in range(4))]
posterior = {name: rng.normal(size=60).astype(np.float32) for name in names}
print(predict(posterior, jax.random.key(0)).mean())
