# the step keeps its first argument, the batch, and donates model and state
# applies: fix-donate-except-first
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

xs = np.random.RandomState(0).normal(size=(64, 1024)).astype("float32")


@eqx.filter_jit
def create(key):
    model = eqx.nn.MLP(1024, 1024, 1024, 1, key=key)
    return model, optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit(donate="all-except-first")
def train_step(x, model, state):
    grads = eqx.filter_grad(lambda m: jnp.mean((jax.vmap(m)(x) - jnp.sin(x)) ** 2))(model)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state


optimizer = optax.adam(1e-2)
model, state = create(jax.random.key(0))
for step in range(12):
    x = xs[step % 4 * 16 :][:16]
    model, state = train_step(x, model, state)
print(float(model.layers[0].weight.sum()))
