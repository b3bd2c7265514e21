# applies: fix-return-values
import jax
import jax.numpy as jnp


@jax.jit
def update(state, x):
    gradients = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(state["w"])
    return {"w": state["w"] - 0.1 * gradients}


state = {"w": jnp.ones((16, 4))}
for _ in range(5):
    state = update(state, jnp.ones((8, 16)))
print(state["w"].sum())
