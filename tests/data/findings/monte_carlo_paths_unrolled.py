# Prices of an option by simulation: the loop over time steps is written out, and each step draws new numbers
import jax
import jax.numpy as jnp

STEPS, PATHS = 64, 2000


@jax.jit
def simulate(key, price, rate, volatility):
    dt = 1.0 / STEPS
    paths = [jnp.full(PATHS, price)]
    for _ in range(STEPS):
        key, sub = jax.random.split(key)  # must: JX202 first ~ jax.lax.scan
        z = jax.random.normal(sub, (PATHS,))
        growth = (rate - 0.5 * volatility**2) * dt + volatility * jnp.sqrt(dt) * z
        paths.append(paths[-1] * jnp.exp(growth))
    return jnp.stack(paths)


@jax.jit
def value(paths, strike):
    return jnp.maximum(paths[-1] - strike, 0).mean()


for price in (90.0, 100.0, 110.0):
    print(price, float(value(simulate(jax.random.key(0), price, 0.03, 0.2), 100.0)))
