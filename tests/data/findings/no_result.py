# a jitted step that assigns the new parameters to its argument and returns nothing
import jax
import jax.numpy as jnp


@jax.jit
def update(state, x):
    gradients = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(state["w"])
    state["w"] = state["w"] - 0.1 * gradients


state = {"w": jnp.ones((16, 4))}
for _ in range(5):
    update(state, jnp.ones((8, 16)))  # must: JX203 first ~ no array
print(state["w"].sum())
