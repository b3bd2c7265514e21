# flax nnx: the model is switched between training and evaluation: two programs of one function, as wanted
import jax.numpy as jnp
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(16, 32, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(32, 4, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(nnx.relu(self.hidden(x))))


@nnx.jit
def loss(model, x):
    return (model(x) ** 2).mean()


model = nnx.jit(lambda: Net(nnx.Rngs(0)))()
x = jnp.ones((8, 16))
for epoch in range(3):
    model.train()
    print(loss(model, x))
    model.eval()
    print(loss(model, x))
