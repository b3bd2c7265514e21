"""Two spawned workers of a pool each jit a function of this file; so does the parent."""

import multiprocessing as mp

import jax
import jax.numpy as jnp


@jax.jit
def work(x):
    return jnp.sin(x).sum()


def begin(barrier):
    global both
    both = barrier


def child(n):
    both.wait(120)  # one worker may not do the work of both: each waits until the other has its own
    return f"{work(jnp.ones(n)):.4f}"


def main():
    context = mp.get_context("spawn")
    with context.Pool(2, begin, [context.Barrier(2)]) as pool:
        results = pool.map(child, [3, 5], chunksize=1)
        pool.close()
        pool.join()  # leaving the block alone would terminate them
    print(f"spawn: children {results} parent {work(jnp.ones(7)):.4f}")


if __name__ == "__main__":
    main()
