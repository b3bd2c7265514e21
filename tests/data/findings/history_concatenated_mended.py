# Mended: The states of a simulation are written into one array of the final length
# applies: fix-final-length
import functools

import jax
import jax.numpy as jnp

import jaxscope


@functools.partial(jax.jit, donate_argnums=1)
def advance(state, history, i):
    state = 0.99 * state + 0.01 * jnp.roll(state, 1)
    return state, history.at[i].set(state)


state = jnp.sin(jnp.arange(4096.0))
history = jnp.zeros((60, 4096))
for i in range(60):
    state, history = advance(state, history, i)
    jaxscope.step()
    if i % 10 == 9:
        jaxscope.snapshot()
print(history.shape)
