# equinox: the training step is not jitted
import equinox as eqx
import jax
import jax.numpy as jnp
import optax


@eqx.filter_jit
def make_model(key):
    return eqx.nn.MLP(16, 4, 32, 2, key=key)


def step(model, opt_state, x):
    grads = eqx.filter_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
    updates, opt_state = tx.update(grads, opt_state, model)  # must: JX133 ~ _jit to step as a whole
    return eqx.apply_updates(model, updates), opt_state


model = make_model(jax.random.key(0))
tx = optax.adam(1e-3)
opt_state = jax.jit(tx.init)(eqx.filter(model, eqx.is_array))
x = jnp.ones((8, 16))
for i in range(5):
    model, opt_state = step(model, opt_state, x)
