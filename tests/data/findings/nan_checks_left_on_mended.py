# applies: fix-setting-off, fix-jit-iteration, fix-jit-around
# may: JX133
import functools

import jax
import jax.numpy as jnp


class Target:
    def __init__(self, scales):
        self.scales = jnp.asarray(scales)

    def log_density(self, x):
        return -0.5 * jnp.sum((x / self.scales) ** 2) - jnp.sum(jnp.log(self.scales))


@functools.partial(jax.jit, static_argnums=0)
def move(target, key, x):
    key, move, level = jax.random.split(key, 3)
    proposal = x + 0.5 * jax.random.normal(move, x.shape)
    ratio = target.log_density(proposal) - target.log_density(x)
    accept = jnp.log(jax.random.uniform(level)) < ratio
    return key, jnp.where(accept, proposal, x), accept


def sample(target, key, x, length):
    accepted = []
    for i in range(length):
        key, x, accept = move(target, key, x)
        accepted.append(accept)
    return x, sum(map(float, accepted)) / length


x, rate = sample(Target([1.0, 2.0, 4.0]), jax.random.key(0), jnp.zeros(3), 2000)
print(f"{rate:.2f}")
