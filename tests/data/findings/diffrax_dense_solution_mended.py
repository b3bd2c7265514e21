# applies: fix-save-at-times
import diffrax
import jax
import jax.numpy as jnp


class Oscillators:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def field(self, t, y, damping):
        x, v = y
        return v, -self.stiffness * x - damping * v

    def solve(self, y0, times, damping):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(self.field),
            diffrax.Tsit5(),
            0.0,
            times[-1],
            dt0=0.05,
            y0=y0,
            args=damping,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
        )

    def positions(self, y0, times, damping):
        solution = self.solve(y0, times, damping)
        return solution.ys[0]


model = Oscillators(jnp.linspace(0.5, 2.0, 256))
positions = jax.jit(model.positions)
times = jnp.linspace(0.0, 5.0, 20)
y0 = (jnp.ones(256), jnp.zeros(256))
for damping in (0.0, 0.1, 0.2):
    print(positions(y0, times, jnp.float32(damping)).std())
