# Mended: one kernel for all chains
# applies: fix-one-owner
from functools import partial

import blackjax
import jax
import jax.numpy as jnp


def logdensity(x):
    return -0.5 * (x**2).sum()


@partial(jax.jit, static_argnums=1)
def sample(key, step, state):
    def one(state, key):
        state, _ = step(key, state)
        return state, state.position

    return jax.lax.scan(one, state, jax.random.split(key, 100))


rmh = blackjax.rmh(logdensity, blackjax.mcmc.random_walk.normal(0.1 * jnp.ones(3)))
for chain in range(4):
    state = rmh.init(jnp.ones(3))
    _, positions = sample(jax.random.key(chain), rmh.step, state)
    print(positions.mean())
