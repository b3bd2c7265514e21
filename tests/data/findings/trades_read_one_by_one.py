# a backtest reads two arrays on the device number by number
import jax
import jax.numpy as jnp
import numpy as np

DAYS = 3000


@jax.jit
def signals(prices):
    window = jnp.convolve(prices, jnp.ones(20) / 20, mode="same")
    return jnp.sign(prices - window).astype(jnp.int32), jnp.diff(prices, prepend=prices[:1])


rng = np.random.default_rng(0)
prices = jnp.asarray(100 + np.cumsum(rng.normal(size=DAYS)), "float32")
sides, changes = signals(prices)
cash, position, trades = 0.0, 0, 0
for day in range(DAYS):
    cash, side = cash + position * float(changes[day]), int(sides[day])  # must: JX603 first ~ jax\.device_get\(\(
    if side != position:
        position, trades = side, trades + 1
print(trades, round(cash, 2))
