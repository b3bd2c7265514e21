"""Measure compiling for accelerators that this machine does not have: ``python benchmarks/targets.py [--json FILE]``.

A 24-layer training step (scan, bf16, data x model mesh) from its shapes, for 16, 256, 1,024 and 4,096 TPU
chips: seconds and memory of the compiler's process, and seconds of the lowering. Then the delay that a
program sees: the same small script run with and without --target on the same forced CPU devices, in turn.
Needs libtpu.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGETS = ("v5e:4x4", "v5e:16x16", "v5p:8x8x16", "v5p:16x16x16")
DELAYED = (("v5e:4x4", 16), ("v5e:16x16", 256))
TURNS = 3

STEP = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

LAYERS, WIDTH = 24, 2048


def mesh():
    return Mesh(np.array(jax.devices()).reshape(-1, 4), ("data", "model"))


def shapes():
    grid = mesh()

    def shape(dims, *spec):
        return jax.ShapeDtypeStruct(dims, jnp.bfloat16, sharding=NamedSharding(grid, P(*spec)))

    up, down = (LAYERS, WIDTH, 4 * WIDTH), (LAYERS, 4 * WIDTH, WIDTH)
    params = {"up": shape(up, None, None, "model"), "down": shape(down, None, "model", None)}
    return params, shape((64 * len(jax.devices()), WIDTH), "data", None)


def step(params, x):
    def layer(x, w):
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    def loss(params):
        return jnp.mean(jax.lax.scan(layer, x, params)[0].astype(jnp.float32) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value
"""

SCRIPT = (
    STEP.replace("2048", "64")
    + """
arguments = jax.tree.map(lambda s: jax.device_put(np.zeros(s.shape, s.dtype), s.sharding), shapes())
jitted = jax.jit(step)
for _ in range(3):
    jax.block_until_ready(jitted(*arguments))
"""
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    given = parser.parse_args()
    if importlib.util.find_spec("libtpu") is None:
        sys.exit("libtpu is not installed: pip install 'jaxscope[tpu]'")
    import jax

    figures: dict[str, object] = {
        "jax": jax.__version__,
        "load_before": os.getloadavg()[0],
        "compile": [],
        "delay": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "step.py").write_text(STEP)
        (Path(folder) / "script.py").write_text(SCRIPT)
        for target in TARGETS:
            row = compiled(target, folder)
            figures["compile"].append(row)  # type: ignore[attr-defined]
            print(json.dumps(row), flush=True)
        for target, devices in DELAYED:
            row = delayed(target, devices, folder)
            figures["delay"].append(row)  # type: ignore[attr-defined]
            print(json.dumps(row), flush=True)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


def compiled(target: str, folder: str) -> dict[str, object]:
    began = time.perf_counter()
    words = ["compile", "step.py:step", "--target", target, "--args", "shapes", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", *words], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )  # fmt: skip
    (found,) = json.loads(done.stdout)["programs"]
    return {
        "target": target,
        "devices": found["num_partitions"],
        "compile_seconds": round(found["compile_seconds"], 2),
        "compiler_gib": round(found["compiler_process_bytes"] / 2**30, 2),
        "lower_seconds": round(found["waited_seconds"], 3),
        "whole_command_seconds": round(time.perf_counter() - began, 1),
        "collectives": len(found["collectives"]),
        "used_gib": round(found["memory"]["used_bytes"] / 2**30, 2),
        "compiler": found["compiler"],
    }


def delayed(target: str, devices: int, folder: str) -> dict[str, object]:
    """Wall time of the script with and without a target; the compiler works beside it, on the same cores."""
    with_target, without, waited = [], [], []
    forced = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    for _ in range(TURNS):
        without.append(timed(["run", "-q", "script.py"], folder, environment() | forced))
        with_target.append(
            timed(["run", "-q", "--target", target, "--wait-targets", "script.py"], folder, environment())
        )
        report = subprocess.run(
            [sys.executable, "-m", "jaxscope", "report", "--format", "json"], cwd=folder, env=environment(),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        programs = json.loads(report.stdout)["programs"]
        waited.append(sum(p.get("waited_seconds") or 0.0 for p in programs))
        time.sleep(1)
    return {
        "target": target,
        "without_seconds": round(statistics.median(without), 2),
        "with_seconds": round(statistics.median(with_target), 2),
        "waited_for_lowering_seconds": round(statistics.median(waited), 3),
    }


def timed(words: list[str], folder: str, env: dict[str, str]) -> float:
    """Seconds of the program itself, as its keeper saw it: not the wait for the compiler after its end."""
    subprocess.run(
        [sys.executable, "-m", "jaxscope", *words], cwd=folder, env=env, check=True, capture_output=True
    )
    report = subprocess.run(
        [sys.executable, "-m", "jaxscope", "report", "--format", "json"], cwd=folder, env=env,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(json.loads(report.stdout)["run"]["seconds"])


def environment() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "XLA_FLAGS"))}
    return env | {"JAX_PLATFORMS": "cpu"}


if __name__ == "__main__":
    main()
