# fits images: each step draws its image from the same key, so that it gets the same image each time
import jax
import jax.numpy as jnp
import numpy as np
import optax


@jax.jit
def train_step(params, state, x):
    def loss(w):
        return jnp.mean((x @ w @ w.T - x) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


images = np.random.default_rng(0).normal(size=(50, 28, 28)).astype(np.float32)
optimizer = optax.adam(1e-2)
params = jnp.eye(28)[:, :8]
state = jax.jit(optimizer.init)(params)
keys = jax.random.split(jax.random.key(0), 2)
for i in range(30):
    which = int(jax.random.randint(keys[1], (), 0, len(images)))  # must: JX135 first ~ jax.random.randint on line 24 draws the same random numbers in each iteration of the loop on line 23, because keys\[1\] is the same # may: JX601
    params, state, value = train_step(params, state, images[which])
print(value)
