# A controller is tuned by the gradient of a simulation whose history of errors grows in each step
import jax
import jax.numpy as jnp


@jax.jit
def step(params, state, error, history, noise):
    signal = params @ jnp.array([error, history.sum(), error - history[-1]])
    state = state + jnp.tanh(signal) + noise
    error = 1.0 - state
    return state, error, jnp.append(history, error)


@jax.jit
def loss(params, noise):
    state, error = jnp.float32(0.0), jnp.float32(1.0)
    history = jnp.array([error, error])
    for t in range(40):
        state, error, history = step(params, state, error, history, noise[t])  # must: JX202 first ~ final length
    return jnp.mean(history**2)


params, gradient = jnp.zeros(3), jax.jit(jax.grad(loss))
for i in range(20):
    noise = 0.1 * jax.random.normal(jax.random.key(i), (40,))
    params -= 0.1 * gradient(params, noise)
print(params.shape)
