# a driver loop with one iteration, around the loop whose filter runs outside jit
# may: JX133
# never: tracker_of_one_simulation.py:44
import jax
import jax.numpy as jnp
import numpy as np

SIMULATIONS = 1
STEPS = 400


class Model:
    def __init__(self):
        self.A = jnp.array([[1.0, 0.1], [0.0, 0.95]])

    def f(self, x, u):
        return self.A @ x + 0.1 * jnp.sin(x) + u

    def g(self, x):
        return jnp.array([jnp.sqrt(x[0] ** 2 + x[1] ** 2), jnp.arctan2(x[1], x[0])])


class Filter:
    def __init__(self, model):
        self.model = model
        self.F = jax.jacfwd(model.f)
        self.G = jax.jacfwd(model.g)
        self.x = jnp.ones(2)
        self.P = jnp.eye(2)

    def predict(self, u):
        F = self.F(self.x, u)
        self.x = self.model.f(self.x, u)
        self.P = F @ self.P @ F.T + 0.01 * jnp.eye(2)

    def update(self, y):
        G = self.G(self.x)
        S = G @ self.P @ G.T + 0.1 * jnp.eye(2)
        K = self.P @ G.T @ jnp.array(np.linalg.inv(S))
        self.x = self.x + K @ (y - self.model.g(self.x))
        self.P = (jnp.eye(2) - K @ G) @ self.P


errors = []
for simulation in range(SIMULATIONS):
    model = Model()
    tracker = Filter(model)
    rng = np.random.default_rng(simulation)
    x = jnp.ones(2)
    for t in range(STEPS):
        u = jnp.array(rng.normal(size=2) * 0.01)
        x = model.f(x, u)
        y = model.g(x) + rng.normal(size=2) * 0.1
        tracker.predict(u)  # must: JX605 first ~ rng.normal at tracker_of_one_simulation.py:51 .*np.linalg.inv
        tracker.update(y)
    errors.append(float(jnp.linalg.norm(tracker.x - x)))
print(np.mean(errors))
