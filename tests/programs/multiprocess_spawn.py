"""Two spawned children each jit a function of this file; so does the parent."""

import multiprocessing as mp

import jax
import jax.numpy as jnp


@jax.jit
def work(x):
    return jnp.sin(x).sum()


def child(n):
    return f"{work(jnp.ones(n)):.4f}"


def main():
    with mp.get_context("spawn").Pool(2) as pool:
        results = pool.map(child, [3, 5], chunksize=1)
    print(f"spawn: children {results} parent {child(7)}")


if __name__ == "__main__":
    main()
