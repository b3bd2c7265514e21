# The states of a simulation are kept in one array, which each step makes longer
import jax
import jax.numpy as jnp

import jaxscope


@jax.jit
def advance(state):
    return 0.99 * state + 0.01 * jnp.roll(state, 1)


state = jnp.sin(jnp.arange(4096.0))
history = jnp.zeros((0, 4096))
for i in range(60):
    state = advance(state)
    history = jnp.concatenate([history, state[None]])  # must: JX133 first ~ history.at
    jaxscope.step()
    if len(history) % 10 == 9:
        jaxscope.snapshot()
print(history.shape)
