# a library jits its evaluation anew for 32 candidates and for 10: each size needs a program, whatever object it has
# never: new function|again
# may: JX202
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))
import jax.numpy as jnp
from solver_library import Search


def score(w):
    for layer in range(16):
        w = jnp.tanh(jnp.linalg.solve(jnp.eye(8) * 2 + jnp.outer(w, w), w)) + layer
    return ((w - 1.0) ** 2).sum()


def main():
    search = Search(score)
    candidates = jnp.linspace(-1.0, 1.0, 32 * 8).reshape(32, 8)
    print(search.run(candidates, 10))


main()
