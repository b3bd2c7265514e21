# Mended: the solver is made once, and what it runs is jitted as a whole
# applies: fix-make-once
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))
import jax
import jax.numpy as jnp
from solver_library import Solver

x = jnp.ones(16)
one_round = jax.jit(Solver(lambda z: ((z - 1) ** 4).sum() + z.sum()).run)
for i in range(10):
    x = one_round(x)
print(x.sum())
