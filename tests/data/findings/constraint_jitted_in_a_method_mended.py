# constraint_jitted_in_a_method: the constraint is defined and jitted once; the fraction is an argument
# applies: fix-define-and-jit-once, fix-define-once
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def volume(density, fraction):
    return jnp.mean(density) / fraction - 1.0


class Design:
    def __init__(self, size, fraction):
        self.density = np.full(size, fraction, np.float32)
        self.fraction = fraction

    def constraint(self, density):
        return jax.value_and_grad(volume)(density, self.fraction)

    def move(self, gradient):
        change = np.clip(np.asarray(gradient) * self.density.size, -0.05, 0.05)
        self.density = np.clip(self.density - 0.1 * change, 0.01, 1.0)


design = Design(400, 0.4)
for _ in range(30):
    value, gradient = design.constraint(design.density)
    design.move(gradient)
print(f"{float(value):.4f}")
