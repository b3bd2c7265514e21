# a simulation in float64: the function that draws its initial state has no floating-point arguments
# never: float64
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


@jax.jit
def initial_state(key):
    a, b = jax.random.split(key)
    return {"position": jax.random.normal(a, (32, 3)), "velocity": 0.1 * jax.random.normal(b, (32, 3))}


@jax.jit
def step(state):
    difference = state["position"][:, None] - state["position"][None, :]
    force = -(difference / (1e-2 + (difference**2).sum(-1, keepdims=True)) ** 1.5).sum(1)
    velocity = state["velocity"] + 1e-3 * force
    return {"position": state["position"] + 1e-3 * velocity, "velocity": velocity}


state = initial_state(jax.random.key(0))
for _ in range(20):
    state = step(state)
print(state["position"].sum())
