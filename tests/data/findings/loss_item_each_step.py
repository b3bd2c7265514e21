# equinox: the loss of a small model is read in each step, in no time on a CPU
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


@eqx.filter_jit
def make(key):
    model = eqx.nn.MLP(4, 1, 16, 1, key=key)
    return model, optim.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def make_step(model, opt_state, x):
    loss, grads = eqx.filter_value_and_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
    updates, opt_state = optim.update(grads, opt_state)
    return loss, eqx.apply_updates(model, updates), opt_state


optim = optax.adam(1e-2)
model, opt_state = make(jax.random.key(0))
rng = np.random.default_rng(0)
for step in range(100):
    x = rng.normal(size=(8, 4)).astype("float32")
    loss, model, opt_state = make_step(model, opt_state, x)
    loss = loss.item()  # must: JX601 note ~ 100 times
    if step % 50 == 0:
        print(step, loss)
