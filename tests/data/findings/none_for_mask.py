# a mask that some calls pass and some do not
import jax
import jax.numpy as jnp


@jax.jit
def attend(x, mask=None):
    scores = x @ x.T
    return jnp.sum(jax.nn.softmax(scores if mask is None else jnp.where(mask, scores, -1e9)) @ x)


x = jnp.ones((32, 16))
mask = jnp.tril(jnp.ones((32, 32), bool))
total = 0.0
for step in range(6):
    total += attend(x, mask if step % 3 == 1 else None)  # must: JX105
print(total)
