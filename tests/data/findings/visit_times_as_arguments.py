# visits to a shop: the Unix times are an argument of the jitted function and become float32, in which they are 128 seconds apart
import functools

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
visits = {
    "time": 1_700_000_000 + np.sort(rng.uniform(0.0, 86_400.0, 3000)),
    "amount": rng.gamma(2.0, 8.0, 3000),
    "customer": rng.integers(0, 500, 3000),
}


@functools.partial(jax.jit, static_argnames="hours")
def spent_together(data, hours):
    """The mean amount of the visits that begin at most a minute after the visit before."""
    close = jnp.diff(data["time"]) < 60.0
    first = data["time"][0]
    hour = ((data["time"] - first) / 3600.0).astype(jnp.int32) % hours
    amounts = data["amount"][1:]
    return (amounts * close).sum() / close.sum(), jnp.bincount(hour, length=hours)


mean, counts = spent_together(visits, hours=24)  # must: JX306 first ~ spent_together is called with a NumPy array of float64 for data\['time'\]. JAX converts it to float32: of the neighboring numbers that were different, \d+% are then equal
print(f"{mean:.2f}", counts)
