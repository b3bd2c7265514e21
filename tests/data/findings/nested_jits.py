# jitted methods called inside one jitted program: rows of 0 s
from functools import partial

import jax


class Env:
    @partial(jax.jit, static_argnums=0)
    def reset(self, k):
        return jax.random.normal(k, (4,))

    @partial(jax.jit, static_argnums=0)
    def step(self, s):
        return s * 0.9


class Wrap:
    def __init__(self, e):
        self.e = e

    @partial(jax.jit, static_argnums=0)
    def reset(self, k):
        return self.e.reset(k)

    @partial(jax.jit, static_argnums=0)
    def step(self, s):
        return self.e.step(s)


env = Wrap(Wrap(Env()))


@jax.jit
def train(k):
    return jax.lax.scan(lambda s, _: (env.step(s), s.sum()), env.reset(k), None, length=10)


print(train(jax.random.key(0))[1].sum())
