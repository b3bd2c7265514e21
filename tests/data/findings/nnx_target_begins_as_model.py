# flax nnx: a target made by nnx.clone, which has the same arrays as the model
import jax
import jax.numpy as jnp
from flax import nnx


@nnx.jit
def train_step(model, target, x):
    def loss_fn(model):
        return jnp.mean((model(x) - target(x)) ** 2)

    grads = nnx.grad(loss_fn)(model)
    state = jax.tree.map(lambda w, g: w - 0.1 * g, nnx.state(model, nnx.Param), grads)
    nnx.update(model, state)
    nnx.update(target, jax.tree.map(lambda t, w: 0.9 * t + 0.1 * w, nnx.state(target, nnx.Param), state))


def main():
    model = nnx.jit(lambda: nnx.Linear(2560, 2560, rngs=nnx.Rngs(0)))()
    target = nnx.clone(model)
    for i in range(5):
        train_step(model, target, jnp.full((8, 2560), i * 1.0))  # must: JX506 first ~ nnx.update\(target
    print(model.kernel.sum(), target.kernel.sum())


main()
