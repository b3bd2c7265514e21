# Mended: as many times in each call, of which some are not used
# applies: fix-one-length
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
    ts = np.append(np.linspace(0, 5, n, dtype="float32"), np.full(6 - n, 5.0, "float32"))
    print(np.asarray(solve(y0, ts))[:n].shape)
