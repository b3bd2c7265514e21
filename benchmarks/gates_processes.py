"""Run four steps that compile something in another process, or at exit; gates.py runs this program.

    jaxscope run gates_processes.py NAME late|early

After step 2 nothing may be compiled. ``late``: it is, in step 3; ``early``: the same in step 1.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import jax
import numpy as np

import jaxscope

MECHANISMS: dict[str, Callable[[int, bool], None]] = {}  # by name: what is done in each step
BEFORE_JAX = {"forked_before_jax_is_used"}  # of these the parent itself compiles nothing
ALONE = "import jax; jax.jit(lambda v: v * 2)(1.0)"
WITH_STEPS = """
import sys, jax, numpy as np, jaxscope
f = jax.jit(lambda v: v * 2)
for k in range(1, 5):
    f(np.ones(5 if k == 3 and sys.argv[1] == "True" else 6))
    jaxscope.step()
"""
f = jax.jit(lambda v: v * 2)


def ones(n: int) -> np.ndarray:
    return np.ones(n, "f4")


def way(do: Callable[[int, bool], None]) -> Callable[[int, bool], None]:
    """Register a program in which each step calls ``do(step, late)``."""
    MECHANISMS[do.__name__] = do
    return do


def once(do: Callable[[], object], name: str) -> None:
    """Register a program that calls ``do()`` in step 3, or in step 1."""

    def step(k: int, late: bool) -> None:
        if k == (3 if late else 1):
            do()

    MECHANISMS[name] = step


def compiles() -> None:
    f(ones(4))


def lowers() -> None:
    """Lower in a child that is forked after JAX was used: XLA would wait for threads that were not forked."""
    f.lower(ones(4))


def steps(late: bool, *, lower: bool = False) -> None:
    """Run a child with steps of its own."""
    for k in range(1, 5):
        (f.lower if lower else f)(ones(5 if late and k == 3 else 6))
        jaxscope.step()


def forked(do: Callable[[], object]) -> None:
    pid = os.fork()
    if not pid:
        code = 1
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def started(method: str, do: Callable[..., object], *args: object) -> None:
    child = multiprocessing.get_context(method).Process(target=do, args=args)
    child.start()
    child.join()
    assert child.exitcode == 0


def pooled() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(compiles).result()


def python(*words: str, **how: object) -> None:
    subprocess.run([sys.executable, *words], check=True, **how)


once(lambda: forked(lowers), "forked")
once(lambda: forked(compiles), "forked_before_jax_is_used")
once(lambda: started("fork", lowers), "multiprocessing_fork")
once(lambda: started("spawn", compiles), "multiprocessing_spawn")
once(lambda: started("forkserver", compiles), "multiprocessing_forkserver")
once(pooled, "process_pool")
once(lambda: python("-c", ALONE), "subprocess")
once(lambda: os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", f"{ALONE!s}"]), "spawnv")
once(lambda: os.system(f"{sys.executable} -c '{ALONE}'"), "shell")
once(
    lambda: python("-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ALONE!r}])"),
    "grandchild",
)


@way
def forked_with_steps(k: int, late: bool) -> None:
    if k == 1:
        forked(lambda: steps(late, lower=True))


@way
def multiprocessing_spawn_with_steps(k: int, late: bool) -> None:
    if k == 1:
        started("spawn", steps, late)


@way
def subprocess_with_steps(k: int, late: bool) -> None:
    if k == 1:
        python("-c", WITH_STEPS, str(late))


@way
def at_exit(k: int, late: bool) -> None:
    if k == 1:
        atexit.register(f, ones(4 if late else 3))


@way
def at_exit_of_a_child(k: int, late: bool) -> None:
    if k == (3 if late else 1):
        python("-c", f"import atexit, jax; atexit.register(lambda: exec({ALONE!r}))")


def main(name: str, when: str) -> None:
    for k in range(1, 5):
        if name not in BEFORE_JAX:
            f(ones(3))
        MECHANISMS[name](k, when == "late")
        jaxscope.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
