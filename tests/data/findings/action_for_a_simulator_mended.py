# the simulator is written in JAX, and the loop runs on the device
# applies: fix-read-for-method
import jax
import jax.numpy as jnp
import numpy as np


def seen(ball, row, cup):
    grid = jnp.zeros((10, 5))
    return grid.at[row, ball].set(1.0).at[9, cup].set(1.0)


@jax.jit
def play(w, balls):
    def step(state, _):
        n, row, cup, caught = state
        action = jnp.argmax(seen(balls[n], row, cup).ravel() @ w)
        row, cup = row + 1, jnp.clip(cup + action - 1, 0, 4)
        done = row == 9
        caught += done & (balls[n] == cup)
        return (n + done, jnp.where(done, 0, row), jnp.where(done, 2, cup), caught), None

    return jax.lax.scan(step, (0, 0, 2, 0), length=300)[0][3]


w = jnp.asarray(np.random.default_rng(1).normal(size=(50, 3)), "float32")
balls = np.random.default_rng(0).integers(5, size=40)
print(play(w, jnp.asarray(balls)))
