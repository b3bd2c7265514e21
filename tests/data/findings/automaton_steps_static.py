# a cellular automaton is trained with another number of steps in each iteration; the number is static
# never: JX202
# may: JX133 note
import jax
import jax.numpy as jnp
import numpy as np
import optax

target = jnp.asarray(np.hypot(*np.mgrid[-8:8, -8:8]) < 4, jnp.float32)


def grown(params, cells, steps):
    for _ in range(steps):
        around = sum(jnp.roll(cells, shift, axis) for shift in (1, -1) for axis in (0, 1))
        features = jnp.stack([cells, around, cells * around], -1)
        cells = cells + jnp.tanh(jax.nn.relu(features @ params["inner"]) @ params["outer"])[..., 0]
    return cells


def loss(params, cells, steps):
    return jnp.mean((grown(params, cells, steps) - target) ** 2)


key_inner, key_outer = jax.random.split(jax.random.key(0))
params = {
    "inner": 0.1 * jax.random.normal(key_inner, (3, 16)),
    "outer": 0.1 * jax.random.normal(key_outer, (16, 1)),
}
optimizer = optax.adam(1e-3)


def update(params, state, cells, steps):
    gradients = jax.grad(loss)(params, cells, steps)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state


step = jax.jit(update, static_argnums=3)
state, seed = optimizer.init(params), jnp.zeros((16, 16)).at[8, 8].set(1.0)
for steps in (12, 15, 13, 14, 16, 12, 15):
    params, state = step(params, state, seed, steps)  # must: JX107 first ~ unrolls the loop at .*:13
print(float(jnp.abs(params["inner"]).sum()))
