"""Measure how soon ``jaxscope report`` begins to print, and how fast it reads large runs.

A run with fifty programs is reported for the first time and again; for large runs, the compilations read per
second and the memory are measured.

    python benchmarks/report.py [--programs 50] [--layers 4] [--rounds 7] [-o benchmarks/report.jax-0.10.json]
    python benchmarks/report.py --large [--only 5000] [-o FILE]      the large runs alone; FILE keeps the rest

Records a program of its own: fifty functions, each a training step of a sharded transformer for eight forced
CPU devices, unrolled. Then starts the command on a terminal (a pipe would be filled before it is handed on),
in turns: the first time, with nothing kept from an earlier reading, and again. Wall-clock seconds from the
start of the process to its first line and to its end, medians and interquartile ranges. The null is
``jaxscope --version``: a Python that starts. ``texts`` is how much there is to read.

``large``: runs without texts, written here, of 50, 2,000 and 10,000 functions that are called with arrays of
growing size. Processor seconds and the largest resident set of the whole command, once each. A first report,
which is not measured, leaves the bytecode of the package, as an installation does: PYTHONDONTWRITEBYTECODE
does not count here.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

def array(*shape, at=(), dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*at)))

def forward(params, tokens):
    x = params["emb"][tokens]
    for p in params["layers"]:
        h = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * p["g"]
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", h, p["qkv"]), 2, 0)
        a = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k), -1)
        x = x + jnp.einsum("bhts,bshk,hkd->btd", a, v, p["o"])
        x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
    return x @ params["emb"].T

def loss(params, tokens):
    return -jnp.mean(jax.nn.log_softmax(forward(params, tokens)))

layer = {{
    "g": array(64), "qkv": array(64, 3, 4, 16, at=("data", None, "model")), "o": array(4, 16, 64, at=("model",)),
    "up": array(64, 256, at=("data", "model")), "down": array(256, 64, at=("model", "data")),
}}
params = {{"layers": [layer] * {layers}, "emb": array(128, 64, at=("model", "data"))}}
"""
STEP = """
@jax.jit
def step_{n}(params, tokens):
    grads = jax.grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - {n} * 0.1 * g, params, grads)

step_{n}.lower(params, array(8, {length}, at=("data",), dtype=jnp.int32)).compile()
"""


def record(folder: Path, programs: int, layers: int) -> Path:
    steps = [STEP.format(n=n, length=16 + n) for n in range(programs)]
    (folder / "train.py").write_text(HEAD.format(layers=layers) + "".join(steps))
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "-o", "recorded", "train.py"],
        cwd=folder, env={**env, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    return folder / "recorded"


def timed(*words: str) -> tuple[float, float]:
    """Seconds to the first line on a terminal, and to the end."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "jaxscope", *words], stdout=theirs, env=env)
    os.close(theirs)
    first = None
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:
            break
        if not data:
            break
        if first is None and b"\n" in data:
            first = time.perf_counter() - began
    if process.wait():
        raise SystemExit(f"{words} ended with {process.returncode}")
    os.close(ours)
    ended = time.perf_counter() - began
    return first or ended, ended


def quartiles(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}


def texts(run: Path) -> dict[str, float]:
    sys.path.insert(0, str(ROOT))
    from jaxscope.log.store import RunDir
    from jaxscope.model.load import load

    found = [p for p in load(RunDir(run)).programs.values() if p.texts]
    size = sum(n for p in found for n in p.text_bytes.values())
    return {"programs": len(found), "megabytes": round(size / 1e6, 1)}


def measure(run: Path, rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    took: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        took.setdefault("null", []).append(timed("--version"))
        page = str(run.parent / "run.html")
        for name, words in (("text", ()), ("json", ("--format", "json")), ("html", ("--html", page))):
            shutil.rmtree(run / "derived", ignore_errors=True)
            for when in ("first", "again"):
                took.setdefault(f"{name}, {when}", []).append(timed("report", str(run), *words))
    return {
        name: {"first_line": quartiles([f for f, _ in t]), "end": quartiles([e for _, e in t])}
        for name, t in took.items()
    }


LARGE = ((50, 100), (2_000, 10), (10_000, 10))  # functions, compilations of each


def write_large(path: Path, functions: int, each: int) -> int:
    """Write a run of many compilations, each with another size of an argument; return its log's bytes."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    from handwritten_runs import Log, function, key, leaf, static

    from jaxscope.log import store

    run = store.create(path, argv=["train.py"])
    log = Log(run)
    log.backend()
    options = {"static_argnums": "(2,)", "static_argnames": "('mode',)"}
    steps = [function(f"step{n}", line=n + 1) for n in range(functions)]
    for step in steps:
        log.say(step)
    for n in range(each):
        mode = static("mode", "ab"[n % 2])
        for f, step in enumerate(steps):
            k = key(leaf("params['w']", 8, 8), leaf("batch['x']", n + 4, 8), static=[mode], options=options)
            log.compiled(step, k, (0.01, 0.02, 0.03), program=f"p{f}.{n}")
    log.end()
    return sum(p.stat().st_size for p in run.logs())


def command(run: Path, form: str) -> list[str]:
    out = run.parent / "out"
    return [sys.executable, "-m", "jaxscope", "report", str(run), "--format", form, "-o", str(out)]


def large(folder: Path, only: int | None) -> dict[str, dict[str, object]]:
    found = {}
    settings = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env = {**settings, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    small = folder / "small"
    write_large(small, 1, 2)
    for form in ("json", "text"):
        subprocess.run(command(small, form), env=env, check=True)
    for functions, each in LARGE:
        total = functions * each
        if only not in (None, total):
            continue
        run = folder / f"large{total}"
        size = write_large(run, functions, each)
        for form in ("json", "text"):
            words = command(run, form)
            began = time.perf_counter()
            process = subprocess.Popen(words, env=env)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{words} ended with {process.returncode}")
            spent = used.ru_utime + used.ru_stime
            found[f"{form}, {total} compilations of {functions} functions"] = {
                "log_megabytes": round(size / 1e6, 1),
                "cpu_seconds": round(spent, 2),
                "seconds": round(time.perf_counter() - began, 2),
                "compilations_per_cpu_second": round(total / spent),
                "peak_megabytes": round(used.ru_maxrss / 1e3),
            }
        shutil.rmtree(run)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--large", action="store_true", help="large runs alone")
    parser.add_argument("--only", type=int, help="of the large runs the one of so many compilations")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.large:
            known = json.loads(args.output.read_text()) if args.output and args.output.exists() else {}
            found = {**known, "large": {**known.get("large", {}), **large(Path(folder), args.only)}}
            deliver(found, args.output)
            return
        run = record(Path(folder), args.programs, args.layers)
        import jax

        found = {
            "jax": jax.__version__,
            "python": sys.version.split()[0],
            "layers": args.layers,
            "texts": texts(run),
            "seconds": measure(run, args.rounds),
            "large": large(Path(folder), args.only),
        }
    deliver(found, args.output)


def deliver(found: dict[str, object], path: Path | None) -> None:
    text = json.dumps(found, indent=1)
    print(text)
    if path:
        path.write_text(text + "\n")


if __name__ == "__main__":
    main()
