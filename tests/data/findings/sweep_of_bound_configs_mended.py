# Mended: what changes is passed as an argument
# applies: fix-pass-bound-values
from functools import partial

import jax
import jax.numpy as jnp


def step(field, key, rate, evaporation):
    noise = jax.random.normal(key, field.shape)
    return field * (1 - evaporation) + rate * jnp.tanh(field + noise)


update = jax.jit(partial(step, evaporation=0.1))


def simulate(params):
    field, key = jnp.zeros(params["shape"]), jax.random.key(params["seed"])
    for i in range(20):
        field = update(field, jax.random.fold_in(key, i), params["rate"])
    return field.mean()


for job in range(5):
    config = {"seed": job, "name": f"job {job}", "shape": (32, 32), "rate": 0.5 + job / 10}
    print(simulate(config))
