# Mended: the steps are a scan
# applies: fix-same-iterations-collected
import jax
import jax.numpy as jnp

STEPS, PATHS = 64, 2000


@jax.jit
def simulate(key, price, rate, volatility):
    dt = 1.0 / STEPS

    def step(state, _):
        key, last = state
        key, sub = jax.random.split(key)
        z = jax.random.normal(sub, (PATHS,))
        growth = (rate - 0.5 * volatility**2) * dt + volatility * jnp.sqrt(dt) * z
        following = last * jnp.exp(growth)
        return (key, following), following

    first = jnp.full(PATHS, price)
    _, paths = jax.lax.scan(step, (key, first), length=STEPS)
    return jnp.concatenate([first[None], paths])


@jax.jit
def value(paths, strike):
    return jnp.maximum(paths[-1] - strike, 0).mean()


for price in (90.0, 100.0, 110.0):
    print(price, float(value(simulate(jax.random.key(0), price, 0.03, 0.2), 100.0)))
