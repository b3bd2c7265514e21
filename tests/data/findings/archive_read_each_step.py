# The batches come from an .npz file, from which NumPy reads the whole array in each step
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

path = f"{tempfile.mkdtemp()}/fields.npz"
rng = np.random.default_rng(0)
np.savez_compressed(path, inputs=rng.integers(-99, 99, (4000, 512)).astype("i2"), scale=np.float32(99))


class Fields:
    def __init__(self, path):
        self.data = np.load(path)
        self.scale = self.data["scale"]

    def batch(self, rows):
        return (self.data["inputs"][rows] / self.scale).astype(np.float32)  # must: JX606 first ~ spends


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) @ w.T - x) ** 2))(w)


fields = Fields(path)
w = 0.1 * jax.random.normal(jax.random.key(0), (512, 16))
for _ in range(120):
    w = step(w, fields.batch(np.sort(rng.integers(0, 4000, 64))))
print(float(jnp.abs(w).mean()))
