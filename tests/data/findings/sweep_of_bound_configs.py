# a sweep: each job binds its configuration, a dict, to the step and jits it again
from functools import partial

import jax
import jax.numpy as jnp


def step(field, key, params):
    noise = jax.random.normal(key, field.shape)
    return field * (1 - params["evaporation"]) + params["rate"] * jnp.tanh(field + noise)


def simulate(params):
    update = jax.jit(partial(step, params=params))
    field, key = jnp.zeros(params["shape"]), jax.random.key(params["seed"])
    for i in range(20):
        field = update(field, jax.random.fold_in(key, i))  # must: JX110 first
    return field.mean()


for job in range(5):
    config = {"seed": job, "name": f"job {job}", "shape": (32, 32), "evaporation": 0.1, "rate": 0.5 + job / 10}
    print(simulate(config))
