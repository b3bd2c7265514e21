# nnx: after a restart from restored arrays, which are committed; the model is evaluated outside jit
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(32, 128, rngs=rngs)
        self.norm = nnx.BatchNorm(128, rngs=rngs)
        self.second = nnx.Linear(128, 128, rngs=rngs)
        self.scale = nnx.LayerNorm(128, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(128, 1, rngs=rngs)

    def __call__(self, x):
        hidden = nnx.softplus(self.norm(self.first(x)))  # must: JX133 ~ apply nnx.jit to Net.__call__
        return self.last(self.drop(nnx.gelu(self.scale(self.second(hidden)))))


@nnx.jit
def step(model, optimizer, x, y):
    def loss(model):
        return jnp.mean((model(x)[:, 0] - y) ** 2)

    value, gradients = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradients)
    return value


rng = np.random.default_rng(0)
inputs = rng.normal(size=(400, 32)).astype("float32")
targets = inputs.sum(1)
graph, state = nnx.split(Net(nnx.Rngs(0)))
restored = jax.device_put(state, jax.devices()[0])  # as a checkpoint library returns it
model = nnx.merge(graph, restored)
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
for epoch in range(3):
    model.train()
    for i in range(0, 400, 100):
        value = step(model, optimizer, inputs[i : i + 100], targets[i : i + 100])  # must: JX116 ~ nnx\.update\(optimizer
    model.eval()
    predicted = model(inputs[:200])
    print(epoch, value, np.mean((np.asarray(predicted)[:, 0] - targets[:200]) ** 2))
