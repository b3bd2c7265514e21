# two loops call the gradient of one function outside jit
# must: JX605 first ~ loops at .*slope = jax.jit.grad
# may: JX133 note
import jax.numpy as jnp
from jax import grad, random

data = random.normal(random.key(0), (2000, 2))


def log_likelihood(r, scale, data):
    n = jnp.sqrt(jnp.sum(jnp.square(data), axis=1))
    c = (0.5 / (scale * jnp.sqrt(2 * jnp.pi))) * jnp.exp(-((n - r[0]) ** 2) / (2 * scale**2))
    return jnp.sum(jnp.log(c + jnp.exp(-((n - r[1]) ** 2))))


slope = grad(log_likelihood)
p = jnp.array([0.1, 0.1])
for j in range(800):
    p = p + 1e-7 * slope(p, 0.2, data[j % 20 * 100 : (j % 20 + 1) * 100])

q = jnp.array([0.1, 0.2])
for j in range(800):
    q = q + 1e-6 * slope(q, 0.2, data[j % 20 * 100 : (j % 20 + 1) * 100])
print(p, q)
