# each seed lowers and compiles the same step ahead of time: its functools.partial is a new object
from functools import partial

import jax
import jax.numpy as jnp


def step(bound, x, key):
    noise = jax.random.normal(key, x.shape)
    x = jnp.sort(jnp.tanh(x @ x.T) @ x + 0.1 * noise, axis=0)
    return jnp.clip(jnp.linalg.qr(x)[0] * jnp.cumsum(x, 1), -bound, bound)


for seed in range(4):
    key = jax.random.key(seed)
    x = jax.random.normal(key, (32, 32))
    compiled = jax.jit(partial(step, 2.0)).lower(x, key).compile()  # must: JX110 first ~ recompiled 3 times
    for n in range(20):
        x = compiled(x, jax.random.fold_in(key, n))
    print(seed, bool(jnp.isfinite(x).all()))
