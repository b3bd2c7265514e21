# the time begins as the integer 0, and each call returns it as a float32 array
import jax
import jax.numpy as jnp


@jax.jit
def advance(x, t, dt):
    def body(_, state):
        x, t = state
        return x + dt * jnp.cos(t) * x, t + dt

    return jax.lax.fori_loop(0, 50, body, (x, jnp.asarray(t, float)))


def simulate(n):
    x = jnp.ones(64)
    t = 0
    for _ in range(n):
        x, t = advance(x, t, 0.01)  # must: JX102 first ~ write t = jnp.float32\(0\) instead of t = 0 at time_begins_as_an_integer.py:17
    return x


print(float(simulate(20).sum()))
