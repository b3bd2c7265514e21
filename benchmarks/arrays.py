"""Measure what a look at the live arrays costs: one look at N arrays, and the share of a training loop.

    python benchmarks/arrays.py [--json FILE]

Both ways are measured: arrays under a dict each, as a model's parameters are, and arrays in one list. CPU
seconds of the thread stand beside wall seconds: on a busy machine they say more. For the loop, the share
is what the looks say they cost over what the loop took: the difference of two runs is below its noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import optax

import jaxscope
from jaxscope.capture.live_arrays.look import Look
from jaxscope.log import reader, store
from jaxscope.schema.events import ArraysSeen

COUNTS = (100, 1_000, 10_000)
LOOKS = 15


def nested(n: int) -> dict[str, dict[str, dict[str, jax.Array]]]:
    """Make ``params['block0007']['dense']['kernel']``: n arrays, half of them kernels."""
    made = jax.jit(lambda: [(jnp.ones((4, 2)), jnp.ones(2)) for _ in range(50)])
    pairs = [pair for _ in range(-(-n // 100)) for pair in made()]
    return {f"block{i:04d}": {"dense": {"kernel": k, "bias": b}} for i, (k, b) in enumerate(pairs[: n // 2])}


def listed(n: int) -> list[jax.Array]:
    return [jnp.asarray(np.ones(2, "float32")) for _ in range(n)]


def one(kind: str, n: int) -> dict[str, object]:
    """Looks at ``n`` arrays held by a local variable."""
    state = nested(n) if kind == "nested" else listed(n)
    jax.block_until_ready(state)
    wall, cpu = [], []
    for _ in range(LOOKS):
        a, b = time.perf_counter(), time.thread_time()
        seen = Look().take(sys._getframe(), "asked", None)
        wall.append((time.perf_counter() - a) * 1e3)
        cpu.append((time.thread_time() - b) * 1e3)
    named = sum(g.count for g in seen.groups if g.path is not None)
    assert named >= n, (named, n)
    return {
        "held": kind,
        "arrays": seen.count,
        "named": named,
        "groups": len(seen.groups),
        "event_bytes": len(msgspec.json.encode(seen)),
        "wall_ms": {"median": statistics.median(wall), "least": min(wall)},
        "cpu_ms": {"median": statistics.median(cpu), "least": min(cpu)},
    }


def loop(layers: int, steps: int) -> dict[str, object]:
    """Run a watched training loop: adam on ``layers`` dense layers."""
    optimizer = optax.adam(1e-3)
    params = {f"layer{i}": {"w": jnp.eye(256), "b": jnp.zeros(256)} for i in range(layers)}
    state = optimizer.init(params)
    batch = jnp.ones((64, 256))

    def loss(p, x):
        for layer in p.values():
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return jnp.mean(x**2)

    @jaxscope.watch(step=True)
    @jax.jit
    def train_step(p, s, x):
        gradients = jax.grad(loss)(p, x)
        updates, s = optimizer.update(gradients, s, p)
        return optax.apply_updates(p, updates), s

    with tempfile.TemporaryDirectory() as folder:
        with jaxscope.record(Path(folder) / "run"):
            began = time.perf_counter()
            for _ in range(steps):
                params, state = train_step(params, state, batch)
            jax.block_until_ready(params)
            seconds = time.perf_counter() - began
        seen = [e for e in reader.read(store.RunDir(Path(folder) / "run")) if isinstance(e, ArraysSeen)]
    looks = [e for e in seen if e.why in ("step", "growth")]
    cost = sum(e.cost_seconds or 0.0 for e in looks)
    return {
        "arrays": seen[-1].count,
        "steps": steps,
        "seconds": seconds,
        "looks": len(looks),
        "looks_ms": cost * 1e3,
        "share": cost / seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    file = parser.parse_args().json
    looks = []
    for kind in ("nested", "list"):
        for n in COUNTS:
            found = one(kind, n)
            looks.append(found)
            wall, cpu = found["wall_ms"], found["cpu_ms"]
            print(
                f"{kind:7} {found['arrays']:7,} arrays, {found['named']:7,} named: wall {wall['median']:7.2f} ms"
                f" (least {wall['least']:.2f}), CPU {cpu['median']:7.2f} ms (least {cpu['least']:.2f}),"
                f" event {found['event_bytes']:,} B in {found['groups']} groups"
            )
    loops = []
    for layers, steps in ((4, 2000), (64, 200)):
        found = loop(layers, steps)
        loops.append(found)
        print(
            f"loop    {found['arrays']:7,} arrays, {found['steps']} steps in {found['seconds']:.1f} s:"
            f" {found['looks']} looks, {found['looks_ms']:.1f} ms, {found['share']:.2%} of the loop"
        )
    if file is not None:
        versions = {"jax": jax.__version__, "python": sys.version.split()[0]}
        file.write_text(json.dumps({**versions, "looks": looks, "loops": loops}, indent=1) + "\n")


if __name__ == "__main__":
    main()
