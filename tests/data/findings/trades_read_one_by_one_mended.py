# Mended: both arrays are copied to the host before the loop
# applies: fix-copy-arrays
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
changes, sides = jax.device_get((changes, sides))
for day in range(DAYS):
    cash, side = cash + position * float(changes[day]), int(sides[day])
    if side != position:
        position, trades = side, trades + 1
print(trades, round(cash, 2))
