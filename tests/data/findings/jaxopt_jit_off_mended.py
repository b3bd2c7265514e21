# Mended: the update is jitted
# applies: fix-jit-method
import jax
import jax.numpy as jnp
import jaxopt

solver = jaxopt.AndersonAcceleration(lambda x: jnp.cos(x), history_size=3, maxiter=6, jit=False)
x = jnp.zeros(20)
state = jax.jit(solver.init_state)(x)
state = state._replace(error=jnp.float32(state.error))
update = jax.jit(solver.update)
for _ in range(6):
    x, state = update(x, state)
print(x[0])
