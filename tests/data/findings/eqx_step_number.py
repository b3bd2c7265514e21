# equinox: the step is a Python number in the first call, and comes back as an array
import equinox as eqx
import jax
import jax.numpy as jnp


@eqx.filter_jit
def make_model(key):
    return eqx.nn.MLP(16, 4, 32, 2, key=key)


@eqx.filter_jit
def train(model, step, batches):
    def add(_, state):
        total, step = state
        x = batches[step % len(batches)]
        grads = eqx.filter_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
        return jax.tree.map(jnp.add, total, grads), step + 1

    zeros = jax.tree.map(jnp.zeros_like, eqx.filter(model, eqx.is_array))
    grads, step = jax.lax.fori_loop(0, 2, add, (zeros, step))
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads)), step


model = make_model(jax.random.key(0))
batches = jnp.ones((6, 8, 16))
step = 0
for _ in range(6):
    model, step = train(model, step, batches)  # must: JX105 first ~ step as an array in every call.*int32
