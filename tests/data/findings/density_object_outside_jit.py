# an object of jax.scipy is made and called on one line, outside jit
import jax
import jax.numpy as jnp
from jax.scipy.stats import gaussian_kde

data = jax.random.normal(jax.random.key(0), (500, 2))
points = jnp.vstack([data[:, 0], data[:, 1]])
density = gaussian_kde(points)(points)  # must: JX133 first ~ jax.jit.lambda points: gaussian_kde.points..points..
print(density[:3].sum().round(3))
