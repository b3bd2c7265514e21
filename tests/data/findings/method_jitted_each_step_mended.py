# Mended: the method is jitted once, where the object is made, and the object is made once
# applies: fix-jit-method-once
import jax
import jax.numpy as jnp


class Trainer:
    def __init__(self):
        self.update = jax.jit(self._update)

    def _update(self, w, x):
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)

    def start(self):
        self.w = jnp.ones((16, 4))

    def step(self, x):
        self.w = self.update(self.w, x)


trainer = Trainer()
for seed in range(4):
    trainer.start()
    for step in range(3):
        trainer.step(jnp.ones((8, 16)))
print(trainer.w.sum())
