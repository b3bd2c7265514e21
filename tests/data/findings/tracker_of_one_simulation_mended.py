# the iteration is one jitted function, which gets the random numbers
# applies: fix-jit-iteration, fix-without-attributes, fix-draw-outside, fix-not-on-host
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

    def predict(self, x, P, u):
        F = self.F(x, u)
        return self.model.f(x, u), F @ P @ F.T + 0.01 * jnp.eye(2)

    def update(self, x, P, y):
        G = self.G(x)
        S = G @ P @ G.T + 0.1 * jnp.eye(2)
        K = P @ G.T @ jnp.linalg.inv(S)
        return x + K @ (y - self.model.g(x)), (jnp.eye(2) - K @ G) @ P


errors = []
for simulation in range(SIMULATIONS):
    model = Model()
    tracker = Filter(model)
    rng = np.random.default_rng(simulation)
    x = jnp.ones(2)

    @jax.jit
    def iteration(x, estimate, P, u, noise):
        x = model.f(x, u)
        y = model.g(x) + noise
        estimate, P = tracker.predict(estimate, P, u)
        return x, *tracker.update(estimate, P, y)

    for t in range(STEPS):
        u = rng.normal(size=2) * 0.01
        noise = rng.normal(size=2) * 0.1
        x, tracker.x, tracker.P = iteration(x, tracker.x, tracker.P, u, noise)
    errors.append(float(jnp.linalg.norm(tracker.x - x)))
print(np.mean(errors))
