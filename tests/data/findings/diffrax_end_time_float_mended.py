# Mended: an array
# applies: fix-asarray-for-equinox
import diffrax
import equinox as eqx
import jax.numpy as jnp

term = diffrax.ODETerm(lambda t, y, args: -y)


@eqx.filter_jit
def solve(y0, t1):
    return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, t1, 0.1, y0).ys


for t1 in (1.0, 1.5, 2.0, 2.5):
    print(solve(jnp.ones(3), jnp.asarray(t1)))
