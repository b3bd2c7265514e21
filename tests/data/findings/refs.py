# training state in jax.Ref, no callback and no debug print anywhere
import jax
import jax.numpy as jnp


@jax.jit
def step(ref, x):
    ref[...] = ref[...] * 0.9 + x.mean()
    return x.sum()


r = jax.new_ref(jnp.ones((128, 128)))
x = jnp.ones(128)
for _ in range(6):
    l = step(r, x)
print(l)
