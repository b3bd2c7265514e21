# the loss of a Gaussian process is computed for the log, and once more for its gradient
# may: JX601
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Regression:
    def __init__(self, x, y, steps):
        self.x, self.y, self.steps = x, y, steps
        self.optimizer = optax.adam(0.05)
        self.objective = jax.jit(self.negative_log_likelihood)
        self.derivative = jax.jit(jax.grad(self.negative_log_likelihood))
        self.apply = jax.jit(self.update)

    def negative_log_likelihood(self, p, x, y):
        scale, height, noise = (jnp.exp(p[k]) for k in ("scale", "height", "noise"))
        distance = jnp.sum((x[:, None] - x[None]) ** 2, -1) / scale**2
        covariance = height * jnp.exp(-0.5 * distance) + (noise + 1e-4) * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(covariance)
        a = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * a @ a + jnp.sum(jnp.log(jnp.diag(factor)))

    def update(self, p, state, grads):
        updates, state = self.optimizer.update(grads, state)
        return optax.apply_updates(p, updates), state

    def fit(self, p):
        state = jax.jit(self.optimizer.init)(p)
        for i in range(self.steps):
            loss = float(self.objective(p, self.x, self.y))  # must: JX205 first ~ jax.value_and_grad of Regression
            grads = self.derivative(p, self.x, self.y)
            p, state = self.apply(p, state, grads)
            print(i, loss)
        return p


rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, (500, 3)).astype("float32")
y = np.sin(x.sum(1)) + 0.1 * rng.normal(size=500).astype("float32")
p = {k: jnp.float32(v) for k, v in {"scale": 0.0, "height": 0.0, "noise": -2.0}.items()}
print(Regression(jax.device_put(x), jax.device_put(y), 25).fit(p))
