# applies: fix-solver-in-jit
# Diffrax integrates an oscillator in one compiled program
import diffrax
import jax
import jax.numpy as jnp
import numpy as np


def slope(t, y, args):
    return jnp.stack([y[1], (1.0 - y[0] ** 2) * y[1] - y[0]])


@jax.jit
def solve(y):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(slope),
        diffrax.Tsit5(),
        t0=0.0,
        t1=100.0,
        dt0=0.01,
        y0=y,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 100.0, 200)),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
    ).ys


for _ in range(60):
    found = solve(jnp.array([2.0, 0.0]))
print(found.shape[1], bool(np.isfinite(found).all()))
