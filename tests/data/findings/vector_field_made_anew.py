# diffeqsolve with a vector field that is a new lambda in each call
import diffrax as dfx
import jax.numpy as jnp


def simulate(k):
    term = dfx.ODETerm(lambda t, y, args: -k * y)
    sol = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.1, jnp.ones(3))  # must: JX133 first ~ vector_field
    return sol.ys


for k in (1.0, 2.0, 3.0, 4.0):
    print(simulate(k))
