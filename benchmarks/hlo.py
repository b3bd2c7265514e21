"""Measure how long reading a compiled text takes, against XLA's own C++ text parser, and its memory.

    python benchmarks/hlo.py [--layers 12 48] [--rounds 9] [-o benchmarks/hlo.jax-0.10.json]

Compiles an unrolled, sharded transformer step for eight forced CPU devices, in a process of its own. Then,
in turns within one process and in CPU time: ``read`` (text to instructions), ``analyze`` (text to everything
the report says) and jaxlib's ``hlo_module_from_text`` on the same text. Medians and interquartile ranges;
the ratio is taken within each round. Memory is what tracemalloc counts: what stays and the peak, over the
bytes of the text.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
COMPILE = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
sys.path.insert(0, {programs!r})
import partitioned
lowered = partitioned.transformer({layers})
open({out!r}, "w").write(lowered.compile().as_text())
"""


def quartiles(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 2), "low": round(low, 2), "high": round(high, 2)}


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    kept = work()
    ended = time.process_time()
    del kept
    return ended - began


def memory(work: Callable[[], object]) -> tuple[int, int]:
    gc.collect()
    tracemalloc.start()
    kept = work()
    stays, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return stays, peak


def measure(text: str, rounds: int) -> dict[str, object]:
    from jaxlib import _jax

    from jaxscope.analysis.hlo.program import analyze
    from jaxscope.analysis.hlo.reader import read

    native = getattr(_jax, "hlo_module_from_text", None)
    if native is None:
        from jaxlib import _hlo

        native = _hlo.hlo_module_from_text
    works: dict[str, Callable[[], object]] = {
        "xla": lambda: native(text),
        "read": lambda: read(text),
        "analyze": lambda: analyze(text, mesh=[("data", 4), ("model", 2)]),
    }
    for work in works.values():
        work()
    # The process that reads never imports jax: its objects shall not be walked by each collection.
    gc.collect()
    gc.freeze()
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        order = list(works) if number % 2 else list(works)[::-1]
        for name in order:
            times[name].append(1000 * seconds(works[name]))
    program = analyze(text)
    result: dict[str, object] = {
        "bytes": len(text.encode()),
        "instructions": program.instructions,
        "collectives": len(program.collectives),
        "fusions": program.fusions.total,
    }
    for name, values in times.items():
        result[f"{name}_ms"] = quartiles(values)
    for name in ("read", "analyze"):
        result[f"{name}_over_xla"] = quartiles(
            [a / b for a, b in zip(times[name], times["xla"], strict=True)]
        )
    for name in ("read", "analyze"):
        stays, peak = memory(works[name])
        result[f"{name}_memory_over_text"] = {
            "stays": round(stays / len(text.encode()), 2),
            "peak": round(peak / len(text.encode()), 2),
        }
    return result


def compiled(layers: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "module.txt"
        code = COMPILE.format(programs=str(ROOT / "tests" / "programs"), layers=layers, out=str(out))
        env = {**os.environ, "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, "-c", code], check=True, env=env, stderr=subprocess.DEVNULL)
        return out.read_text()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--layers", type=int, nargs="+", default=[12, 48])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("-o", "--out", type=Path)
    given = options.parse_args()
    import jax

    figures: dict[str, object] = {"jax": jax.__version__, "python": sys.version.split()[0]}
    for layers in given.layers:
        figures[f"{layers} layers"] = measure(compiled(layers), given.rounds)
    text = json.dumps(figures, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
