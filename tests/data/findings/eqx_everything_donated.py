# all arguments of the step are donated, a small batch among them, which no result can replace: nothing to change
# may: JX133 note
# never: is donated to .* without effect
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

xs = np.random.RandomState(0).normal(size=(64, 4)).astype("float32")
model = eqx.nn.MLP(4, 4, 32, 1, key=jax.random.key(0))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit(donate="all")
def train_step(model, state, x):
    grads = eqx.filter_grad(lambda m: jnp.mean((jax.vmap(m)(x) - jnp.sin(x)) ** 2))(model)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state


for step in range(12):
    x = xs[step % 4 * 16 :][:16]
    model, state = train_step(model, state, x)
print(float(model.layers[0].weight.sum()))


@eqx.filter_jit(donate="all-except-first")
def evaluate(model, x):
    return jnp.mean((jax.vmap(model)(x) - jnp.sin(x)) ** 2)


print(evaluate(model, xs[:16]))
