# a policy acts in a simulator written in Python: each action has to be read before the next observation
# never: the previous step
import jax
import jax.numpy as jnp
import numpy as np


class Falling:
    """A ball falls into a cup that moves left and right."""

    def reset(self, rng):
        self.ball, self.row, self.cup = int(rng.integers(5)), 0, 2
        return self.seen()

    def seen(self):
        grid = np.zeros((10, 5), np.float32)
        grid[self.row, self.ball] = grid[9, self.cup] = 1.0
        return grid

    def step(self, action):
        self.row, self.cup = self.row + 1, min(4, max(0, self.cup + action - 1))
        return self.seen(), self.row == 9


@jax.jit
def policy(w, seen):
    return jnp.argmax(seen.ravel() @ w)


w = jnp.asarray(np.random.default_rng(1).normal(size=(50, 3)), "float32")
world, rng = Falling(), np.random.default_rng(0)
seen, caught = world.reset(rng), 0
for _ in range(300):
    action = int(policy(w, seen))  # must: JX601 note ~ 300 times
    seen, done = world.step(action)
    if done:
        caught += world.ball == world.cup
        seen = world.reset(rng)
print(caught)
