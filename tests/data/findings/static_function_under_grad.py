# the gradient of a jitted function is taken outside jit, and its static argument is a new lambda in each step
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


@partial(jax.jit, static_argnames="field")
def solve(field, y, theta):
    def step(y, _):
        return y + 0.1 * field(y, theta), None

    return jax.lax.scan(step, y, None, 20)[0]


rng = np.random.default_rng(0)
theta, start = jnp.ones(3), rng.normal(size=3).astype("float32")
for i in range(8):
    decay = 0.9**i

    def loss(theta):
        return jnp.sum(solve(lambda y, t: -decay * t * jnp.tanh(y), start, theta) ** 2)  # must: JX108 first ~ captures decay: pass it to solve as an ordinary argument  # may: JX605

    theta = theta - 0.1 * jax.grad(loss)(theta)  # may: JX133
print(theta)
