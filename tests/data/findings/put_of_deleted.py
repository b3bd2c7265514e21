import jax
import jax.numpy as jnp
import numpy as np

x = jnp.arange(10.0)
x.delete()
try:
    jax.device_put(x, jax.devices()[0])
except Exception as e:
    print(type(e).__name__, e)
for i in range(5):
    y = jax.device_put(np.ones(3 + i))  # five real transfers, afterwards
print(y)
