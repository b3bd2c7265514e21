# a library's solver made anew in each round: its jitted method and its while_loop are compiled in every round
# never: JX202
# never: self.step
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))
import jax.numpy as jnp
from solver_library import Solver

x = jnp.ones(16)


def one_round(x):
    return Solver(lambda z: ((z - 1) ** 4).sum() + z.sum()).run(x)  # must: JX133 first


for i in range(10):
    x = one_round(x)
print(x.sum())
