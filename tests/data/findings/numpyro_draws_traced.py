# predictions of a posterior, one draw after the other: handlers run the model outside jit
# may: JX603 note, JX605
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.handlers import seed, substitute, trace

DOSES = [jnp.asarray(np.linspace(0, 1, n), jnp.float32) for n in (31, 17, 23, 40)]


def model(doses):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    for k, dose in enumerate(doses):
        start = numpyro.sample(f"start_{k}", dist.Normal(0.0, 1.0))
        with numpyro.plate(f"ward_{k}", len(dose)):
            numpyro.sample(f"seen_{k}", dist.Bernoulli(logits=start + slope * dose))


def predict(posterior, key, count):
    found = []
    for i in range(count):
        draw = {name: values[i] for name, values in posterior.items()}
        conditioned = substitute(seed(model, jax.random.fold_in(key, i)), data=draw)
        sites = trace(conditioned).get_trace(DOSES)  # must: JX133 first ~ Predictive
        found.append(jnp.concatenate([sites[f"seen_{k}"]["value"] for k in range(4)]))
    return jnp.stack(found)


rng = np.random.default_rng(0)
names = ["slope", *(f"start_{k}" for k in range(4))]
posterior = {name: rng.normal(size=60).astype(np.float32) for name in names}
print(predict(posterior, jax.random.key(0), 60).mean())
