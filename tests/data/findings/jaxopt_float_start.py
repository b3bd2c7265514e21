# jaxopt: the parameter starts as a Python float and comes back as an array
import jax
import jax.numpy as jnp
import jaxopt
import optax

solver = jaxopt.OptaxSolver(opt=optax.adam(1e-1), fun=lambda theta, x: ((theta * x - 1) ** 2).mean())
x = jnp.ones(10)
theta = 1.0
state = solver.init_state(theta, x)
for _ in range(5):
    theta, state = solver.update(theta, state, x)  # must: JX133 first ~ float32
print(theta)
