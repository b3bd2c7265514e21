# an object reads each value one call later, and the rest after the last step: there is nothing to change
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(x):
    return jax.lax.fori_loop(0, 200, lambda i, x: jnp.sin(x) * 1.0001, x)


class Simulation:
    def __init__(self):
        self.x, self.means, self.n = jnp.linspace(0.0, 1.0, 4096), [], 0
        self.pending = None

    def show(self):
        print(np.asarray(self.means).mean().round(3))

    def advance(self):
        self.x, mean = step(self.x), None
        if self.n % 50 == 0:
            np.asarray(self.x).tobytes()
        mean = self.x[0]
        if self.pending is not None:
            self.means.append(float(self.pending))
        self.pending = mean
        if self.n >= 300:
            self.show()
            raise SystemExit
        self.n += 1


simulation = Simulation()
while True:
    simulation.advance()
