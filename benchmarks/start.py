"""Measure how much longer a small program takes under ``jaxscope run``: its start, and the summary at its end.

python benchmarks/start.py     # about 2 minutes

The program jits and calls ten functions. It runs alone, alone again (the null), under ``jaxscope run``, and under
``jaxscope run -q`` (without the summary), in turn. Python keeps its bytecode in a temporary directory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax

ROUNDS = 11
PROGRAM = """\
import jax, jax.numpy as jnp

for k in range(10):
    jax.jit(lambda x, k=k: jnp.sin(x) * k + k)(jnp.ones(8 + k))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(PROGRAM)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode")), "JAX_PLATFORMS": "cpu"}
        recorded = [sys.executable, "-m", "jaxscope", "run", "--no-tui"]
        commands = {
            "alone": [sys.executable],
            "alone again": [sys.executable],
            "jaxscope run": recorded,
            "jaxscope run -q": [*recorded, "-q"],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(ROUNDS + 1):  # the first round, which writes the bytecode, does not count
            for name, command in commands.items():
                began = time.perf_counter()
                subprocess.run([*command, program], cwd=folder, env=env, capture_output=True, check=True)
                if turn:
                    seconds[name].append(time.perf_counter() - began)
    alone = statistics.median(seconds["alone"])
    print(f"JAX {jax.__version__}: {alone:.2f} s alone, medians of {ROUNDS} alternating runs")
    for name, spent in seconds.items():
        low, middle, high = (q - alone for q in statistics.quantiles(spent, n=4))
        print(f"{name:16} {middle:+.2f} s longer (IQR {low:+.2f} to {high:+.2f})")


if __name__ == "__main__":
    main()
