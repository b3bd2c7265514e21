# the last step plots a list of 300 arrays: nothing waits in each step
import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@jax.jit
def step(x):
    return jax.lax.fori_loop(0, 200, lambda i, x: jnp.sin(x) * 1.0001, x), jnp.mean(x**2)


class Simulation:
    def __init__(self):
        self.x, self.means, self.n = jnp.linspace(0.0, 1.0, 4096), [], 0

    def show(self):
        plt.plot(self.means)

    def advance(self):
        self.x, mean = step(self.x)
        self.means.append(mean)
        if self.n >= 300:
            self.show()
            raise SystemExit
        self.n += 1


simulation = Simulation()
while True:
    simulation.advance()
