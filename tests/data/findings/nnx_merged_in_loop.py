# flax nnx: each evaluation jits a new function over the merged model
import jax
import jax.numpy as jnp
from flax import nnx

model = nnx.jit(lambda: nnx.Linear(64, 64, rngs=nnx.Rngs(0)))()
graphdef, state = nnx.split(model)
x = jnp.ones((8, 64))


def evaluate(state, x):
    return jax.jit(lambda s, x: nnx.merge(graphdef, s)(x).mean())(state, x)  # must: JX110 first


for epoch in range(5):
    print(evaluate(state, x))
