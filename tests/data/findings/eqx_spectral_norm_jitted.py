# equinox: the creation of a model is jitted; a layer of the library runs its own loop of fifteen turns in it
import equinox as eqx
import jax
import jax.numpy as jnp


class Model(eqx.Module):
    norm: eqx.nn.SpectralNorm

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.norm = eqx.nn.SpectralNorm(eqx.nn.Linear(3, 32, key=first), "weight", key=second)


model, state = eqx.filter_jit(eqx.nn.make_with_state(Model))(jax.random.key(0))
y, state = eqx.filter_jit(model.norm)(jnp.ones(3), state)
print(y.shape)
