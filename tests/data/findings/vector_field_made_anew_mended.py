# Mended: one vector field, whose parameter is an argument
# applies: fix-make-object-once
import diffrax as dfx
import jax.numpy as jnp

term = dfx.ODETerm(lambda t, y, k: -k * y)


def simulate(k):
    sol = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.1, jnp.ones(3), args=jnp.float32(k))
    return sol.ys


for k in (1.0, 2.0, 3.0, 4.0):
    print(simulate(k))
