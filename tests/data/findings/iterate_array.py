# iterating over a jax array on the host
import jax.numpy as jnp

x = jnp.arange(2000)
print("".join(chr(97 + int(v) % 26) for v in x)[:10])  # must: JX133 first ~ asarray
