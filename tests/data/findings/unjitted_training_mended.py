# Mended: the model is made under jit, and so are its steps
# applies: fix-jit-step, fix-jit-this-call
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

model = eqx.filter_jit(lambda: eqx.nn.MLP(4, 2, 32, 1, key=jax.random.key(0)))()
opt = optax.adam(1e-3)
st = opt.init(eqx.filter(model, eqx.is_array))


def loss(m, x):
    return (jax.vmap(m)(x) ** 2).mean()


@eqx.filter_jit
def step(model, st, x):
    g = eqx.filter_grad(loss)(model, x)
    u, st = opt.update(g, st)
    return eqx.apply_updates(model, u), st


for i in range(4):
    model, st = step(model, st, jnp.ones((8, 4)))
print(model.layers[0].bias.sum())
