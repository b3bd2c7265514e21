# a training loop of equinox and optax without any jit: each line is compiled operation by operation
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

model = eqx.nn.MLP(4, 2, 32, 1, key=jax.random.key(0))  # may: JX133
opt = optax.adam(1e-3)
st = opt.init(eqx.filter(model, eqx.is_array))


def loss(m, x):
    return (jax.vmap(m)(x) ** 2).mean()


for i in range(4):
    g = eqx.filter_grad(loss)(model, jnp.ones((8, 4)))
    u, st = opt.update(g, st)  # must: JX133 ~ lines 17 and 18 in the loop.*filter_jit
    model = eqx.apply_updates(model, u)
print(model.layers[0].bias.sum())
