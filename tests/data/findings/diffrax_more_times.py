# diffrax: each call saves at one time more than the call before
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

term = diffrax.ODETerm(lambda t, y, args: -y)


@jax.jit
def solve(y0, ts):
    saveat = diffrax.SaveAt(ts=ts)
    return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 5.0, 0.1, y0, saveat=saveat).ys


y0 = jnp.ones(3)
for n in range(2, 7):
    print(solve(y0, np.linspace(0, 5, n, dtype="float32")).shape)  # must: JX101 first
