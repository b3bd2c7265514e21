# SciPy integrates an oscillator whose right-hand side is a jitted function
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp


@jax.jit
def slope(t, y):
    return jnp.stack([y[1], (1.0 - y[0] ** 2) * y[1] - y[0]])


for _ in range(60):
    found = solve_ivp(lambda t, y: slope(np.float32(t), y), (0.0, 100.0), np.array([2.0, 0.0]), rtol=1e-6, atol=1e-6)  # must: JX608 first ~ diffrax
print(found.y.shape[0], bool(np.isfinite(found.y).all()))
