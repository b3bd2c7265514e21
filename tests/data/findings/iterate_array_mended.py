# Mended: iterating over a jax array on the host
# applies: fix-iterate-numpy, fix-iterate-numpy-arrays
import jax.numpy as jnp
import numpy as np

x = jnp.arange(2000)
print("".join(chr(97 + int(v) % 26) for v in np.asarray(x))[:10])
