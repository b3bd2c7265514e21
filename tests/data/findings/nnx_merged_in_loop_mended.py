# Mended: the function is defined once
# applies: fix-define-at-module-level
import jax
import jax.numpy as jnp
from flax import nnx

model = nnx.jit(lambda: nnx.Linear(64, 64, rngs=nnx.Rngs(0)))()
graphdef, state = nnx.split(model)
x = jnp.ones((8, 64))


@jax.jit
def evaluate(state, x):
    return nnx.merge(graphdef, state)(x).mean()


for epoch in range(5):
    print(evaluate(state, x))
