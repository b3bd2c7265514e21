# a Hawkes process: the Unix times of the events become float32, in which they are 128 seconds apart
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
stamps = 1_700_000_000 + np.cumsum(rng.exponential(90.0, 800))
times = jnp.asarray(stamps)  # must: JX306 first ~ converts float64 to float32: of the neighboring numbers that were different, \d+% are then equal


@jax.jit
def step(params, state):
    def loss(params):
        rate, decay = jnp.exp(params)
        gaps = jnp.diff(times)
        return -(jnp.log(rate) - rate * gaps * jnp.exp(-decay * gaps)).mean()

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


optimizer = optax.adam(1e-2)
params = jnp.array([-4.0, -6.0])
state = jax.jit(optimizer.init)(params)
for _ in range(50):
    params, state, value = step(params, state)
print(f"{value:.3f}")
