# A training loop appends each loss to a JAX array
import jax
import jax.numpy as jnp


@jax.jit
def step(w, x, y):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * gradient, loss


x = jax.random.normal(jax.random.key(0), (256, 32))
y = x @ jnp.linspace(-1.0, 1.0, 32)
w = jnp.zeros(32)
losses = jnp.array([])
for _ in range(80):
    w, loss = step(w, x, y)
    losses = jnp.append(losses, loss)  # must: JX133 first ~ losses.append
print(losses[-1], losses.shape)
