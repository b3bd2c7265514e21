# Mended: the step is jitted
# applies: fix-jit-method
import blackjax
import jax
import jax.numpy as jnp


def logdensity(x):
    return -0.5 * (x**2).sum()


hmc = blackjax.hmc(logdensity, step_size=0.1, inverse_mass_matrix=jnp.ones(3), num_integration_steps=5)
state = jax.jit(hmc.init)(jnp.ones(3))
step = jax.jit(hmc.step)
key = jax.random.key(0)
for i in range(6):
    state, info = step(jax.random.fold_in(key, i), state)
print(state.position)
