# a jitted function makes and calls the object
# applies: fix-jit-this-call
import jax
import jax.numpy as jnp
from jax.scipy.stats import gaussian_kde

data = jax.random.normal(jax.random.key(0), (500, 2))
points = jnp.vstack([data[:, 0], data[:, 1]])
jitted = jax.jit(lambda points: gaussian_kde(points)(points))
density = jitted(points)
print(density[:3].sum().round(3))
