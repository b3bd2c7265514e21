# equinox: a step that holds the old model and the new one at the same time
# never: donate_argnames
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


@eqx.filter_jit
def train_step(model, state, x):
    grads = eqx.filter_grad(lambda m: jnp.mean((jax.vmap(m)(x) - jnp.sin(x)) ** 2))(model)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state


optimizer = optax.adam(1e-2)
model, state = create(jax.random.key(0))
for step in range(12):
    x = xs[step % 4 * 16 :][:16]
    model, state = train_step(model, state, x)  # must: JX506 ~ make x the first parameter, here and in the calls. A call then deletes the arrays of model and state
print(float(model.layers[0].weight.sum()))
