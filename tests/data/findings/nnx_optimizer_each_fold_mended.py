# Mended: all folds share one gradient transformation
# applies: fix-one-optimizer
import jax
import jax.numpy as jnp
import optax
from flax import nnx


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
    optimizer.update(model, grads)
    return loss


model_of = nnx.jit(lambda key: nnx.Linear(16, 1, rngs=nnx.Rngs(key)))
x, y = jnp.ones((32, 16)), jnp.ones((32, 1))
adam = optax.adam(1e-3)
for fold in range(4):
    model = model_of(jax.random.key(fold))
    optimizer = nnx.Optimizer(model, adam, wrt=nnx.Param)
    for _ in range(5):
        loss = train_step(model, optimizer, x, y)
    print(fold, loss)
