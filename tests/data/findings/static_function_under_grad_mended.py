# Mended: the function is created once, and what changes is an argument
# applies: fix-one-function, pass-what-it-captures
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


@partial(jax.jit, static_argnames="field")
def solve(field, y, theta):
    def step(y, _):
        return y + 0.1 * field(y, theta), None

    return jax.lax.scan(step, y, None, 20)[0]


def field(y, theta):
    return -theta[-1] * theta[:-1] * jnp.tanh(y)


rng = np.random.default_rng(0)
theta, start = jnp.ones(3), rng.normal(size=3).astype("float32")
for i in range(8):
    decay = 0.9**i

    def loss(theta):
        return jnp.sum(solve(field, start, jnp.append(theta, decay)) ** 2)

    theta = theta - 0.1 * jax.grad(loss)(theta)  # may: JX133
print(theta)
