"""Measure what recording costs: a warm call, a call off the fast path, and a compilation.

Warm calls are timed in interleaved blocks of random order, with a null (bare against bare), so that
the machine's drift falls on all alike; what counts is the difference to bare and its spread. Where a
process happens to lay out its memory shifts a call with 300 arrays by a microsecond, the null too: so
all of it is done in several processes, and told are the medians over them. For comparison: a Python
wrapper that keeps attributes, and JAX's own explain flag.

    python benchmarks/overhead.py [--quick] [-o FILE]
    python benchmarks/overhead.py --effects-only [-o FILE]     # calls with effects alone, into an earlier FILE
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

PROCESSES = 5
WARM_UP = 150


def timed(call, argument, count: int) -> float:
    """Nanoseconds a call."""
    import jax

    start = time.perf_counter_ns()
    for _ in itertools.repeat(None, count):
        result = call(argument)
    elapsed = time.perf_counter_ns() - start
    jax.block_until_ready(result)
    return elapsed / count


class Plain:
    """The obvious wrapper: counts, and passes attributes on."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function, self.count = function, 0

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.function, name)


def row(name: str, values: list[float], base: list[float]) -> dict:
    deltas = sorted(a - b for a, b in zip(values, base, strict=True))
    n = len(deltas)
    return {
        "variant": name,
        "median_ns": round(statistics.median(values)),
        "delta_ns": round(statistics.median(deltas)),
        "iqr_ns": [round(deltas[n // 4]), round(deltas[3 * n // 4])],
    }


def warm_calls(quick: bool) -> dict:
    """Bare, recorded, watched, wrapped and explained warm calls; and how many callbacks ran."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxscope
    from jaxscope.capture import session

    tree = {f"l{i}": {"k": jnp.ones(4), "b": jnp.ones(2), "s": jnp.ones(1)} for i in range(100)}
    one = jax.jit(lambda a: a + 1)
    scale, table, names = 2.0, jnp.ones(8), {"a": 1.0, "b": 2.0}
    reading = jax.jit(lambda a: a * scale + table * names["a"] + names["b"])  # four values from outside
    many = jax.jit(lambda t: sum(v[0] for v in jax.tree.leaves(t)))
    results = {}
    for label, function, argument, count, blocks in (
        ("1 array", one, jnp.ones(8), 2000, 21),
        ("1 array, 4 values read from outside", reading, jnp.ones(8), 2000, 21),
        ("1 NumPy array", one, np.ones(8, "f4"), 500, 21),
        ("300 arrays", many, tree, 60, 61),
    ):
        watched, wrapped = jaxscope.watch(function), Plain(function)
        with tempfile.TemporaryDirectory() as directory:
            numbers = itertools.count()

            @contextlib.contextmanager
            def recorded(directory=directory, numbers=numbers):
                with jaxscope.record(Path(directory) / str(next(numbers))):
                    yield

            @contextlib.contextmanager
            def explained():
                jax.config.update("jax_explain_cache_misses", True)
                try:
                    yield
                finally:
                    jax.config.update("jax_explain_cache_misses", False)

            idle = contextlib.nullcontext
            variants = {
                "bare": (idle, function),
                "bare again (null)": (idle, function),
                "recorded": (recorded, function),
                "recorded, watched": (recorded, watched),
                "watched, nothing recording": (idle, watched),
                "plain Python wrapper": (idle, wrapped),
                "jax_explain_cache_misses": (explained, function),
            }
            times: dict[str, list[float]] = {name: [] for name in variants}
            order = list(variants)
            callbacks = 0
            gc.collect()
            gc.disable()
            for block in range(2 + (blocks // 4 if quick else blocks)):
                random.shuffle(order)
                for name in order:
                    around, call = variants[name]
                    with around():
                        if function is reading and name == "recorded, watched":
                            function.clear_cache()  # what a trace reads is known of traces in the recording
                            timed(call, argument, 200)
                        # The looks at the arrays of a recording's first steps are not of a warm call.
                        timed(call, argument, WARM_UP)
                        probe = session.current().probe if session.current() else None
                        before = probe.callbacks if probe else 0
                        spent = timed(call, argument, count)
                        callbacks += probe.callbacks - before if probe else 0
                    if block >= 2:
                        times[name].append(spent)
            gc.enable()
        rows = [row(name, times[name], times["bare"]) for name in variants]
        results[label] = {"callbacks_run_on_warm_calls": callbacks, "rows": rows}
    return results


def in_processes(quick: bool) -> dict:
    """Run ``warm_calls`` in PROCESSES fresh processes; return medians over them, and each one's."""
    runs = []
    with tempfile.TemporaryDirectory() as directory:
        for n in range(1 if quick else PROCESSES):
            out = Path(directory) / f"{n}.json"
            flags = ["--quick"] if quick else []
            subprocess.run([sys.executable, __file__, "--warm-only", "-o", str(out), *flags], check=True)
            runs.append(json.loads(out.read_text()))
    merged = {}
    for label in runs[0]:
        rows = []
        for same in zip(*(run[label]["rows"] for run in runs), strict=True):

            def median(pick, same=same) -> int:
                return round(statistics.median(pick(r) for r in same))

            rows.append(
                {
                    "variant": same[0]["variant"],
                    "median_ns": median(lambda r: r["median_ns"]),
                    "delta_ns": median(lambda r: r["delta_ns"]),
                    "iqr_ns": [median(lambda r: r["iqr_ns"][0]), median(lambda r: r["iqr_ns"][1])],
                    "delta_ns_by_process": sorted(r["delta_ns"] for r in same),
                }
            )
        callbacks = sum(run[label]["callbacks_run_on_warm_calls"] for run in runs)
        merged[label] = {"callbacks_run_on_warm_calls": callbacks, "rows": rows}
    return merged


def off_the_fast_path(quick: bool) -> dict:
    """Calls that JAX itself takes off its fast path: effects, and warm pmap calls."""
    import jax
    import jax.numpy as jnp

    import jaxscope
    from jaxscope.capture import session

    @jax.jit
    def effects(x):
        jax.debug.callback(lambda v: None, x)
        return x + 1

    mapped = jax.pmap(lambda v: v * 2)
    results = {}
    for label, function, argument, count in (
        ("effects", effects, jnp.ones(8), 100),
        ("pmap", mapped, jnp.ones((1, 8)), 200),
    ):
        times: dict[str, list[float]] = {"bare": [], "bare again (null)": [], "recorded": []}
        callbacks = calls = 0
        for _ in range(3):
            timed(function, argument, 10)
        order = list(times)
        with tempfile.TemporaryDirectory() as directory:
            for block in range(10 if quick else 41):
                random.shuffle(order)
                for name in order:
                    with (
                        jaxscope.record(Path(directory) / f"{block}")
                        if name == "recorded"
                        else contextlib.nullcontext()
                    ):
                        time.sleep(0.1)  # the threads that a recording starts have begun
                        timed(
                            function, argument, 100
                        )  # its first calls are described, and its code is loaded
                        before = session.current().probe.callbacks if name == "recorded" else 0
                        times[name].append(timed(function, argument, count))
                        if name == "recorded":
                            callbacks += session.current().probe.callbacks - before
                            calls += count
                    jax.effects_barrier()
        results[label] = {
            "callbacks_per_call": round(callbacks / calls, 3),
            "rows": [row(name, times[name], times["bare"]) for name in times],
        }
    return results


TRANSFORMER = """
import contextlib, sys, time, jax, jax.numpy as jnp
D, HEADS, LAYERS, VOCAB, LENGTH, BATCH = 256, 8, 12, 512, 64, 4
def norm(p, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]
def attention(p, x):
    q, k, v = (jnp.einsum("btd,dhf->bthf", x, p[n]) for n in ("q", "k", "v"))
    scores = jnp.einsum("bthf,bshf->bhts", q, k) / jnp.sqrt(D / HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    return jnp.einsum("bhts,bshf,hfd->btd", jax.nn.softmax(scores), v, p["o"])
def layer(p, x):
    x = x + attention(p["attention"], norm(p["norm1"], x))
    h = jax.nn.gelu(norm(p["norm2"], x) @ p["up"]["w"] + p["up"]["b"])
    return x + h @ p["down"]["w"] + p["down"]["b"]
def loss(params, ids):
    x = params["embed"][ids] + params["position"]
    for p in params["layers"]: x = layer(p, x)
    logits = norm(params["norm"], x) @ params["embed"].T
    logp = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.take_along_axis(logp, ids[:, 1:, None], -1).mean()
def train_step(state, ids):
    value, grads = jax.value_and_grad(loss)(state["params"], ids)
    count = state["count"] + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], grads)
    nu = jax.tree.map(lambda n, g: 0.99 * n + 0.01 * g * g, state["nu"], grads)
    def update(p, m, n):
        m, n = m / (1 - 0.9**count), n / (1 - 0.99**count)
        return p - 1e-3 * (m / (jnp.sqrt(n) + 1e-8) + 1e-2 * p)
    return dict(params=jax.tree.map(update, state["params"], mu, nu), mu=mu, nu=nu, count=count), value
def ln(): return dict(scale=jnp.ones(D), bias=jnp.zeros(D))
def block():
    heads = {n: jnp.ones((D, HEADS, D // HEADS)) * 0.02 for n in "qkv"}
    return dict(attention=dict(heads, o=jnp.ones((HEADS, D // HEADS, D)) * 0.02), norm1=ln(), norm2=ln(),
                up=dict(w=jnp.ones((D, 4 * D)) * 0.02, b=jnp.zeros(4 * D)), down=dict(w=jnp.ones((4 * D, D)) * 0.02, b=jnp.zeros(D)))
params = dict(embed=jnp.ones((VOCAB, D)), position=jnp.ones((LENGTH, D)), norm=ln(), layers=[block() for _ in range(LAYERS)])
state = dict(params=params, mu=jax.tree.map(jnp.zeros_like, params), nu=jax.tree.map(jnp.zeros_like, params), count=jnp.float32(0))
ids = jnp.ones((BATCH, LENGTH), jnp.int32)
jax.block_until_ready((state, ids))
around, ours, beside = contextlib.nullcontext(), 0.0, 0.0
if sys.argv[1] != "bare":
    import jaxscope
    from jaxscope.capture.probe import Probe
    from jaxscope.capture.program_memory import MemoryReading
    around, guarded = jaxscope.record(sys.argv[1]), Probe._guarded
    def timed(*args):  # every callback of ours goes through this one method
        global ours
        begin = time.perf_counter()
        guarded(*args)
        ours += time.perf_counter() - begin
    Probe._guarded = timed
    run = MemoryReading._run
    def timed_run(*args):  # in a thread beside the program
        global beside
        begin = time.thread_time()
        run(*args)
        beside += time.thread_time() - begin
    MemoryReading._run = timed_run
with around:
    step = jax.jit(train_step, donate_argnums=0)
    start = time.perf_counter()
    step(state, ids)  # dispatch returns when everything is compiled
    whole = time.perf_counter() - start
    ours_until_then = ours
print(whole, ours_until_then, beside)
"""


def compile_share(quick: bool) -> dict:
    """Trace, lower and compile a 12-layer transformer step, bare and recorded, in fresh processes in turn."""
    times: dict[str, list[float]] = {"bare": [], "bare again (null)": [], "recorded": []}
    inside, threads = [], []
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "transformer.py"
        program.write_text(TRANSFORMER)
        for n in range(3 if quick else 7):
            order = list(times)
            random.shuffle(order)
            for name in order:
                where = str(Path(directory) / f"run{n}") if name == "recorded" else "bare"
                done = subprocess.run(
                    [sys.executable, str(program), where], capture_output=True, text=True, check=True
                )
                whole, ours, beside = map(float, done.stdout.split())
                times[name].append(whole)
                if name == "recorded":
                    inside.append(100 * ours / (whole - ours))
                    threads.append(100 * beside / (whole - ours))
    base = times["bare"]

    def shares(name: str) -> dict:
        ratios = sorted(100 * (a / b - 1) for a, b in zip(times[name], base, strict=True))
        n = len(ratios)
        return {
            "variant": name,
            "median_seconds": round(statistics.median(times[name]), 3),
            "extra_percent": round(statistics.median(ratios), 2),
            "iqr_percent": [round(ratios[n // 4], 2), round(ratios[3 * n // 4], 2)],
        }

    # The difference of two compilations drifts by more than what is looked for; the seconds spent in
    # our callbacks do not.
    inside.sort()
    callbacks = {
        "median": round(statistics.median(inside), 2),
        "range": [round(inside[0], 2), round(inside[-1], 2)],
    }
    return {
        "rows": [shares(name) for name in times],
        "pairs": len(base),
        "percent_in_our_callbacks": callbacks,
        "percent_cpu_beside": round(statistics.median(threads), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the blocks: a look, not a figure")
    parser.add_argument("-o", "--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--warm-only", action="store_true", help="warm calls in this process alone, as JSON")
    parser.add_argument(
        "--effects-only", action="store_true", help="calls off the fast path alone; -o replaces them in FILE"
    )
    options = parser.parse_args()
    if options.effects_only:
        found = off_the_fast_path(options.quick)
        print(json.dumps(found, indent=1))
        if options.out:
            figures = {**json.loads(options.out.read_text()), "off_the_fast_path": found}
            options.out.write_text(json.dumps(figures, indent=1) + "\n")
        return
    if options.warm_only:
        options.out.write_text(json.dumps(warm_calls(options.quick)))
        return
    import jax

    figures = {
        "jax": jax.__version__,
        "python": sys.version.split()[0],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "warm_call": in_processes(options.quick),
        "off_the_fast_path": off_the_fast_path(options.quick),
        "transformer_12_layers": compile_share(options.quick),
    }
    print(f"JAX {figures['jax']}, Python {figures['python']}, {figures['cores']} cores")
    for part in ("warm_call", "off_the_fast_path"):
        for label, found in figures[part].items():
            ran = found.get("callbacks_run_on_warm_calls", found.get("callbacks_per_call"))
            print(
                f"\n{part.replace('_', ' ')}, {label}: callbacks {'per call' if 'per' in ' '.join(found) else 'run'} {ran}"
            )
            for r in found["rows"]:
                print(
                    f"   {r['variant']:28} {r['median_ns']:>9,} ns   {r['delta_ns']:>+8,} ns  IQR [{r['iqr_ns'][0]:+,}, {r['iqr_ns'][1]:+,}]"
                )
    print("\ntrace + lower + compile, 12-layer transformer step")
    for r in figures["transformer_12_layers"]["rows"]:
        print(
            f"   {r['variant']:28} {r['median_seconds']:>7.3f} s   {r['extra_percent']:>+6.2f} %  IQR [{r['iqr_percent'][0]:+.2f}, {r['iqr_percent'][1]:+.2f}]"
        )
    share = figures["transformer_12_layers"]["percent_in_our_callbacks"]
    print(
        f"   spent in our callbacks: {share['median']:.2f} % of the bare time, {share['range'][0]:.2f} to {share['range'][1]:.2f}"
        f"; CPU in a thread beside it: {figures['transformer_12_layers']['percent_cpu_beside']:.2f} %"
    )
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
