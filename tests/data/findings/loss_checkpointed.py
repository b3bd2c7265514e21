# jax.checkpoint around the whole loss: the forward pass is computed twice, and the gradient needs as much memory as before
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Classifier(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm

    def __init__(self, key):
        keys = jax.random.split(key, 4)
        sizes = [24, 96, 96, 96, 5]
        self.layers = [eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys)]
        self.norm = eqx.nn.LayerNorm(96)

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = self.norm(jax.nn.gelu(layer(x)))
        return self.layers[-1](x)


def loss(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


optimizer = optax.adam(1e-3)


@eqx.filter_jit(donate="all")
def train_step(model, state, x, y):
    saving = eqx.filter_checkpoint(loss)  # must: JX207 first ~ forward pass twice
    value, grads = eqx.filter_value_and_grad(saving)(model, x, y)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state, value


model = eqx.filter_jit(Classifier)(jax.random.key(0))
state = jax.jit(optimizer.init)(eqx.filter(model, eqx.is_array))
rng = np.random.default_rng(0)
for step in range(30):
    x = rng.normal(size=(64, 24)).astype("float32")
    model, state, value = train_step(model, state, jnp.asarray(x), jnp.asarray(x[:, 0] > 0, jnp.int32))
print(float(value))
