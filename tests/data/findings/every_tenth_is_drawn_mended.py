# applies: fix-return-what-is-read
import jax
import jax.numpy as jnp
from jax.experimental.ode import odeint

STRIDE = 10
SPRINGS = 4096


def forces(state, t, k):
    x, v = state
    return v, -k * x - 0.01 * v


@jax.jit
def solve(x, v, times, k):
    return odeint(forces, (x, v), times[::STRIDE], k, rtol=1e-4)


k = jnp.linspace(0.5, 2.0, SPRINGS)
x, v = jnp.ones(SPRINGS), jnp.zeros(SPRINGS)
times = jnp.linspace(0.0, 4.0, 1001)
for _ in range(3):
    xs, vs = solve(x, v, times, k)
    print(xs.shape, float(xs.std()))
    x, v = xs[-1], vs[-1]
