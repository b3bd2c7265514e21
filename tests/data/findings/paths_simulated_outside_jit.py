# Monte Carlo prices and their sensitivity: no function is jitted, and each price goes through many steps in order
import jax
import jax.numpy as jnp


def simulate(key, start, steps=100, paths=2000):
    s = jnp.ones(paths) * start
    for _ in range(steps):
        key, sub = jax.random.split(key)
        s = s * jnp.exp(0.0004 + 0.02 * jax.random.normal(sub, (paths,)))  # must: JX605|JX133 first ~ apply jit to (price|simulate) as a whole.*at paths_simulated_outside_jit.py:8.*so write it as jax.lax.scan
    return s


def price(key, strike, start):
    return jnp.mean(jnp.maximum(simulate(key, start) - strike, 0))


key = jax.random.key(0)
for strike in range(80, 120, 2):
    p, slope = price(key, float(strike), 100.0), jax.grad(price, 2)(key, float(strike), 100.0)  # may: JX133
    print(strike, p, slope)  # may: JX601
