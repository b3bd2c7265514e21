# Mended: nnx.jit of (model, optimizer): which names does the donation advice give, and in which order are two notes
# applies: fix-donate-in-place
# may: JX205 note
from functools import partial

import jax.numpy as jnp
import optax
from flax import nnx


class M(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(2048, 2048, rngs=rngs)
        self.b = nnx.Linear(2048, 10, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))


model = nnx.jit(lambda: M(nnx.Rngs(0)))()
opt = nnx.Optimizer(model, optax.sgd(1e-3, momentum=0.9), wrt=nnx.Param)
met = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))


@partial(nnx.jit, donate_argnames=("model", "optimizer"))
def train_step(model, optimizer, metrics, x):
    loss, g = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    optimizer.update(model, g)
    metrics.update(loss=loss)


@partial(nnx.jit, donate_argnames="model")
def eval_step(model, metrics, x):
    metrics.update(loss=(model(x) ** 2).mean())


x = jnp.ones((32, 2048))
for _ in range(3):
    train_step(model, opt, met, x)
    eval_step(model, met, x)
print(met.compute())
