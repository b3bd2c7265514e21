"""Measure what counting transfers costs: ``float(x)``, a second one, ``x.item()``, ``device_get``,
``device_put``.

    python benchmarks/transfers.py [--quick] [-o FILE]

One process, blocks in random order: bare, bare again (the null), counted. The same recording is on all the
time; between blocks the stand-ins are put in and taken out, and JAX's events about puts passed on or not. All
values are ready before they are read, and CPU time of the thread is taken: on a busy machine it says more,
and waiting is not looked for. Each block reads arrays of its own, since only the first reading of an array is
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope
from jaxscope.capture import session
from jaxscope.log import reader, store
from jaxscope.schema.events import Transferred

HOST = np.ones(256, "float32")


def scalars(n: int) -> list[jax.Array]:
    """Arrays of their own, all computed."""
    return jax.block_until_ready([jnp.float32(i) for i in range(n)])


def reads(values: list[jax.Array]) -> None:
    for v in values:
        float(v)


def items(values: list[jax.Array]) -> None:
    for v in values:
        v.item()


def gets(values: list[jax.Array]) -> None:
    for v in values:
        jax.device_get(v)


def puts(values: list[jax.Array]) -> None:
    for _ in values:
        jax.device_put(HOST)


CASES = {
    "float(x), the first time": (reads, False),
    "float(x), once more": (reads, True),
    "x.item()": (items, False),
    "jax.device_get(x)": (gets, False),
    "jax.device_put(array)": (puts, False),
}


def measure(name: str, rounds: int, n: int) -> dict[str, object]:
    """Nanoseconds of the thread's CPU time each, by kind of block."""
    act, again = CASES[name]
    recording = session.current()
    copies, puts_heard = recording._copies, recording.probe.puts
    found: dict[str, list[float]] = {"bare": [], "null": [], "counted": []}
    copies.remove()
    for _ in range(rounds):
        blocks = list(found)
        random.shuffle(blocks)
        for block in blocks:
            values = scalars(n)
            if again:
                act(values)
            recording.probe.puts = None
            if block == "counted":
                copies.install()
                recording.probe.puts = puts_heard
                if again:
                    act(values)  # counted, and remembered
            began = time.thread_time_ns()
            act(values)
            found[block].append((time.thread_time_ns() - began) / n)
            if block == "counted":
                copies.remove()
    copies.install()
    recording.probe.puts = puts_heard
    return {
        "what": name,
        "bare_ns": statistics.median(found["bare"]),
        "null": _spread(found["null"], found["bare"]),
        "counted": _spread(found["counted"], found["bare"]),
    }


def _spread(values: list[float], base: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles([a - b for a, b in zip(values, base, strict=True)], n=4)
    return {"median": middle, "low": low, "high": high}


def loop(n: int) -> dict[str, int]:
    """Count the events that a loop of ``n`` copies adds, and their bytes."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "run"
        with jaxscope.record(where, arrays=False):
            for start in range(0, n, 1000):
                reads(scalars(min(1000, n - start)))
        said = [
            e for e in reader.read(store.RunDir(where)) if isinstance(e, Transferred) and e.via == "float"
        ]
        lines = [line for log in store.RunDir(where).logs() for line in log.read_bytes().splitlines()]
        size = sum(len(line) for line in lines if b'"Transferred"' in line)
    return {"copies": said[-1].count, "events": len(said), "bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", type=Path)
    asked = parser.parse_args()
    rounds, n = (10, 200) if asked.quick else (60, 500)
    found = []
    with tempfile.TemporaryDirectory() as folder, jaxscope.record(Path(folder) / "run", arrays=False):
        for name in CASES:
            row = measure(name, rounds, n)
            found.append(row)
            null, counted = row["null"], row["counted"]
            print(
                f"{name:26} bare {row['bare_ns']:8,.0f} ns; null {null['median']:+6,.0f}"
                f" (IQR {null['low']:+,.0f} to {null['high']:+,.0f});"
                f" counted {counted['median']:+6,.0f} (IQR {counted['low']:+,.0f} to {counted['high']:+,.0f})"
            )
    many = loop(2_000 if asked.quick else 100_000)
    print(f"{many['copies']:,} copies: {many['events']} events, {many['bytes']:,} bytes")
    if asked.o is not None:
        versions = {"jax": jax.__version__, "python": sys.version.split()[0]}
        asked.o.write_text(json.dumps({**versions, "calls": found, "loop": many}, indent=1) + "\n")


if __name__ == "__main__":
    main()
