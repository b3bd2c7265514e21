# nnx: the accuracy of each batch in a jitted function of its own, before the step that computes the same logits
# never: jax\.value_and_grad
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
def accuracy(model, x, y):
    return (model(x).argmax(-1) == y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_fn(model):
        logits = model(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


model = create()
optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (256, 32))
y = jnp.arange(256) % 4
for epoch in range(5):
    right = accuracy(model, x, y)  # must: JX205 first ~ let train_step return the result of accuracy, too, .* = nnx\.value_and_grad
    loss = train_step(model, optimizer, x, y)
print(loss, right)
