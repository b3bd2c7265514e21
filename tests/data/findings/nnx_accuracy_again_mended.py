# Mended: the step returns the accuracy of its logits
# applies: fix-has-aux
import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(32, 64, rngs=rngs)
        self.b = nnx.Linear(64, 4, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))


@nnx.jit
def create():
    return Net(nnx.Rngs(0))


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_fn(model):
        logits = model(x)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
        return loss, (logits.argmax(-1) == y).mean()

    (loss, right), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)
    optimizer.update(model, grads)
    return loss, right


model = create()
optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (256, 32))
y = jnp.arange(256) % 4
for epoch in range(5):
    loss, right = train_step(model, optimizer, x, y)
print(loss, right)
