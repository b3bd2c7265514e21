# applies: fix-one-dtype, fix-always-or-never
import numpy as np
import optax
from flax import nnx

m = nnx.jit(lambda: nnx.Linear(4, 2, rngs=nnx.Rngs(0)))()
opt = nnx.Optimizer(m, optax.adam(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, opt, batch, step):
    def loss(model):
        return (model(batch["x"]) ** 2).mean() * (step + 1)

    l, g = nnx.value_and_grad(loss)(model)
    opt.update(model, g)
    return l


for i in range(6):
    x = np.ones((8, 4), "float32")
    b = {"x": x}
    train_step(m, opt, b, i)
