# NumPy calls the price and its gradient for one row of a table at a time, outside jit
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm


def price(spot, strike, years, volatility):
    root = volatility * jnp.sqrt(years)
    upper = (jnp.log(spot / strike) + volatility**2 / 2 * years) / root
    return spot * norm.cdf(upper) - strike * norm.cdf(upper - root)


delta = jax.grad(price)
rng = np.random.default_rng(0)
table = np.stack([rng.uniform(80, 120, 200), np.full(200, 100.0), rng.uniform(0.1, 2, 200), rng.uniform(0.1, 0.5, 200)], 1)
prices = np.apply_along_axis(lambda row: float(price(*row)), 1, table)  # must: JX605 first ~ numpy calls price.*jitted = jax\.jit\(price\)
deltas = np.apply_along_axis(lambda row: float(delta(*row)), 1, table)
print(round(float(prices.mean()), 3), round(float(deltas.mean()), 3))
