# equinox: each restart makes a model with a lambda of its own, and filter_jit compares functions by identity
import equinox as eqx
import jax
import jax.numpy as jnp


@eqx.filter_jit
def loss(model, x):
    return (jax.vmap(model)(x) ** 2).mean()


def make_model(seed):
    return eqx.filter_jit(eqx.nn.MLP)(8, 1, 16, 1, activation=lambda x: x * jax.nn.sigmoid(x), key=jax.random.key(seed))


x = jnp.ones((32, 8))
for seed in range(4):
    print(loss(make_model(seed), x))  # must: JX108|JX109 ~ activation
