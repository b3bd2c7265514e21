# Each phase of the training has an optimizer and a number of points of its own, so that it is traced anew
import jax
import jax.numpy as jnp
import optax


def train(w, schedule):
    @jax.jit
    def step(w, state, t):
        grads = jax.grad(lambda w: jnp.mean((w[0] * t + w[1] - jnp.sin(t)) ** 2))(w)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(w, updates), state

    for rate, points in schedule:
        optimizer = optax.sgd(rate)
        state = optimizer.init(w)
        t = jnp.linspace(0.0, 3.0, points)
        for _ in range(100):
            w, state = step(w, state, t)
    return w


print(train(jnp.zeros(2), [(0.1, 50), (0.01, 480)]).shape)
