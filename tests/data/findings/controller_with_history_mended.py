# applies: fix-final-length-then-scan
# A controller is tuned by the gradient of a simulation that is a scan over steps with a sum of errors
import jax
import jax.numpy as jnp


@jax.jit
def loss(params, noise):
    def step(carry, noise):
        state, error, before, total = carry
        signal = params @ jnp.array([error, total, error - before])
        state = state + jnp.tanh(signal) + noise
        after = 1.0 - state
        return (state, after, after, total + after), after

    one = jnp.float32(1.0)
    _, errors = jax.lax.scan(step, (jnp.float32(0.0), one, one, 2 * one), noise)
    return (jnp.sum(errors**2) + 2) / (len(noise) + 2)


params, gradient = jnp.zeros(3), jax.jit(jax.grad(loss))
for i in range(20):
    noise = 0.1 * jax.random.normal(jax.random.key(i), (40,))
    params -= 0.1 * gradient(params, noise)
print(params.shape)
