# jaxopt: a solver with jit=False, stepped in a loop
import jax.numpy as jnp
import jaxopt

solver = jaxopt.AndersonAcceleration(lambda x: jnp.cos(x), history_size=3, maxiter=6, jit=False)
x = jnp.zeros(20)
state = solver.init_state(x)
for _ in range(6):
    x, state = solver.update(x, state)  # must: JX133 first ~ jax.jit.solver.update
print(x[0])
