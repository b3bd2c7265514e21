# flax nnx: a usual training loop without a mistake
import jax
import numpy as np
import optax
from flax import nnx


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(16, 32, rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.b = nnx.Linear(32, 4, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.norm(self.a(x))))


@nnx.jit
def create():
    model = MLP(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


rng = np.random.default_rng(0)
model, optimizer = create()
losses = []
for i in range(100):
    x, y = rng.normal(size=(32, 16)).astype("float32"), rng.integers(0, 4, 32)
    losses.append(train_step(model, optimizer, x, y))
print(np.mean(jax.device_get(losses)))
