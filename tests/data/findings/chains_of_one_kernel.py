# warm-up and sampling of three chains: each call of scan compiles the same kernel again
import jax
import jax.numpy as jnp


def energy(q):
    scale = jnp.exp(q[-1]) * jnp.eye(len(q) - 1)
    return 0.5 * (jnp.linalg.slogdet(scale)[1] + q[:-1] @ jnp.linalg.solve(scale, q[:-1])) + q[-1] ** 2 / 18


def chain(q, mass):
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

    return q, kernel


keys, start = jax.random.split(jax.random.key(0), 1100), jnp.zeros(3)
q, kernel = chain(start, 1.0)
q, _ = jax.lax.scan(kernel, q, keys[:100])  # must: JX133 first ~ scan outside jit was compiled 6 times.*Define the body once
q, light = jax.lax.scan(kernel, q, keys[100:])
q, kernel = chain(start, 2.0)
q, _ = jax.lax.scan(kernel, q, keys[:100])
q, heavy = jax.lax.scan(kernel, q, keys[100:])
q, kernel = chain(start, 0.5)
q, _ = jax.lax.scan(kernel, q, keys[:100])
q, quick = jax.lax.scan(kernel, q, keys[100:])
print(light.mean(), heavy.mean(), quick.mean())
