# a topology optimization: a method defines and jits the constraint in each iteration, and differentiates it
import jax
import jax.numpy as jnp
import numpy as np


class Design:
    def __init__(self, size, fraction):
        self.density = np.full(size, fraction, np.float32)
        self.fraction = fraction

    def constraint(self, density):
        @jax.jit
        def volume(density):
            return jnp.mean(density) / self.fraction - 1.0

        return jax.value_and_grad(volume)(density)  # must: JX110 first ~ 29 times.* define and jit the function once

    def move(self, gradient):
        change = np.clip(np.asarray(gradient) * self.density.size, -0.05, 0.05)
        self.density = np.clip(self.density - 0.1 * change, 0.01, 1.0)


design = Design(400, 0.4)
for _ in range(30):
    value, gradient = design.constraint(design.density)
    design.move(gradient)
print(f"{float(value):.4f}")
