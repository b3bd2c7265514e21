"""Two forked children each jit a function. They fork before the parent has used JAX, as JAX asks."""

import multiprocessing as mp

import jax
import jax.numpy as jnp


@jax.jit
def work(x):
    return jnp.cos(x).sum()


def child(n, queue):
    queue.put((n, f"{work(jnp.zeros(n)):.1f}"))


def main():
    context = mp.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=child, args=(n, queue)) for n in (3, 5)]
    for process in children:
        process.start()
    results = sorted(queue.get() for _ in children)
    for process in children:
        process.join()
    codes = [process.exitcode for process in children]
    print(f"fork: children {results} exit codes {codes} parent {work(jnp.zeros(7)):.1f}")


if __name__ == "__main__":
    main()
