# the mass is an argument of one jitted function, and warm-up and sampling are one scan
# applies: fix-one-jitted-loop
import jax
import jax.numpy as jnp


def energy(q):
    scale = jnp.exp(q[-1]) * jnp.eye(len(q) - 1)
    return 0.5 * (jnp.linalg.slogdet(scale)[1] + q[:-1] @ jnp.linalg.solve(scale, q[:-1])) + q[-1] ** 2 / 18


@jax.jit
def chain(q, mass, keys):
    slope = jax.grad(energy)

    def leap(_, state):
        q, p = state
        p = p - 0.05 * slope(q)
        q = q + 0.1 * p / mass
        return q, p - 0.05 * slope(q)

    def kernel(q, key):
        draw, level = jax.random.split(key)
        p = jax.random.normal(draw, q.shape) * jnp.sqrt(mass)
        new, end = jax.lax.fori_loop(0, 10, leap, (q, p))
        change = energy(q) + p @ p / (2 * mass) - energy(new) - end @ end / (2 * mass)
        return jnp.where(jnp.log(jax.random.uniform(level)) < change, new, q), q

    return jax.lax.scan(kernel, q, keys)[1]


keys, start = jax.random.split(jax.random.key(0), 1100), jnp.zeros(3)
light = chain(start, 1.0, keys)
heavy = chain(start, 2.0, keys)
quick = chain(start, 0.5, keys)
print(light[100:].mean(), heavy[100:].mean(), quick[100:].mean())
