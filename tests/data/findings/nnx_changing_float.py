# never: static
import numpy as np
from flax import nnx


@nnx.jit
def step(model, x, lr):
    return (model.kernel[...] * lr).sum() + x.sum()


m = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
for i, n in enumerate((8, 8, 8, 3)):
    step(m, np.ones(n, "float32"), 0.1 / (i + 1))  # must: JX101 first
