# a loss and an accuracy, each jitted, for batches of which the last is shorter
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

xs = np.random.RandomState(0).normal(size=(168, 16)).astype("float32")
model = eqx.filter_jit(eqx.nn.MLP)(16, 4, 32, 2, key=jax.random.key(0))


@eqx.filter_jit
def loss(model, x):
    return jnp.mean(jax.vmap(model)(x) ** 2)


@eqx.filter_jit
def accuracy(model, x):
    return jnp.mean(jnp.argmax(jax.vmap(model)(x), axis=1) == 0)


total = [0.0, 0.0]
for at in range(0, len(xs), 64):
    x = xs[at : at + 64]
    total = [total[0] + loss(model, x), total[1] + accuracy(model, x)]  # must: JX101 first ~ also recompiled
print(float(total[0]), float(total[1]))
