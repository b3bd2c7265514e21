# logistic regression by reweighted least squares: the weights are a diagonal matrix
import jax
import jax.numpy as jnp
import numpy as np

ROWS, FEATURES = 1500, 40


def make(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = (x[:, 0] - 0.5 * x[:, 1] + rng.logistic(size=ROWS) > 0).astype(np.float32)
    return x, y


@jax.jit
def newton_step(beta, x, y):
    p = jax.nn.sigmoid(x @ beta)
    hessian = x.T @ jnp.diag(p * (1 - p)) @ x + 0.1 * jnp.eye(FEATURES)  # must: JX211 first ~ diagonal matrix
    gradient = x.T @ (p - y) + 0.1 * beta
    return beta - jnp.linalg.solve(hessian, gradient)


@jax.jit
def smooth(values, basis):
    return basis @ basis.T @ values  # must: JX211 ~ three arrays in a costly order


folds = [make(fold) for fold in range(4)]
bases = [np.linalg.qr(x)[0] for x, _ in folds]
for fold, (x, y) in enumerate(folds):
    beta = jnp.zeros(FEATURES)
    for _ in range(12):
        beta = newton_step(beta, x, y)
    fitted = x @ np.asarray(beta)
    for _ in range(10):
        fitted = smooth(fitted, bases[fold])
    print(fold, np.round(np.asarray(beta)[:3], 2), float(np.abs(np.asarray(fitted)).max()))
