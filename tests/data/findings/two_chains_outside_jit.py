# two loops outside jit with functions in common: the advice for each of them is about this loop
# may: JX133 note
import jax.numpy as jnp
from jax import grad, random

data = random.normal(random.key(0), (2000, 2))


def log_likelihood(r, scale, data):
    n = jnp.sqrt(jnp.sum(jnp.square(data), axis=1))
    c = (0.5 / (scale * jnp.sqrt(2 * jnp.pi))) * jnp.exp(-((n - r[0]) ** 2) / (2 * scale**2))
    return jnp.sum(jnp.log(c + jnp.exp(-((n - r[1]) ** 2))))


def log_prior(r, scale=10):
    return -jnp.log(2 * jnp.pi * scale**2) - jnp.sum(jnp.square(r)) / (2 * scale**2)


slope, slope_of_prior = grad(log_likelihood), grad(log_prior)
p = jnp.array([0.1, 0.1])
for j in range(300):
    batch = data[j % 20 * 100 : (j % 20 + 1) * 100]
    p = p + 1e-7 * (slope(p, 0.2, batch) + slope_of_prior(p))  # must: JX605|JX133 ~ put the operations of one iteration|move the computation of this line

p = jnp.array([0.1, 0.1])
g = slope(p, 0.2, data) + slope_of_prior(p)
for j in range(300):
    q = p + 1e-7 * g + 1e-4 * random.normal(random.key(j), (2,))
    g_q = slope(q, 0.2, data) + slope_of_prior(q)  # must: JX605 ~ iteration of the loop at two_chains_outside_jit.py:27|put the operations of one iteration
    a = log_likelihood(q, 0.2, data) + log_prior(q) - log_likelihood(p, 0.2, data) - log_prior(p)
    if random.uniform(random.key(j)) < jnp.exp(a):
        p, g = q, g_q
print(p)
