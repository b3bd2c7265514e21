# Mended: every call passes a mask
# applies: fix-none-or-array
import jax
import jax.numpy as jnp


@jax.jit
def attend(x, mask):
    return jnp.sum(jax.nn.softmax(jnp.where(mask, x @ x.T, -1e9)) @ x)


x = jnp.ones((32, 16))
everything, causal = jnp.ones((32, 32), bool), jnp.tril(jnp.ones((32, 32), bool))
total = 0.0
for step in range(6):
    total += attend(x, causal if step % 3 == 1 else everything)
print(total)
