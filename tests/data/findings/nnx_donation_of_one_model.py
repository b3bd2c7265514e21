# flax nnx: three functions are passed one model, which nnx.jit updates in place: one note on donation
# never: if your code does not read
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(1024, 1024, rngs=rngs)
        self.b = nnx.Linear(1024, 1024, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))


@nnx.jit
def create():
    model = Net(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def forward(model, x):
    return nnx.sigmoid(model(x))


@nnx.jit
def sample(model, z):
    return model.b(z)


model, optimizer = create()
for _ in range(3):
    loss = train_step(model, optimizer, jnp.ones((8, 1024)))  # must: JX506 first ~ may read .* after the call
print(loss, forward(model, jnp.ones((5, 1024))).shape, sample(model, jnp.ones((5, 1024))).shape)
