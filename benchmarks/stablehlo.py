"""Measure how long reading and analyzing a lowered program's text takes, and its memory.

The text is that of an unrolled transformer step, lowered by the JAX at hand and printed as capture prints it.
Beside it, MLIR's own parser (C++) on the same text. Each figure is the median over rounds in which all take
their turn, in seconds of processor time (the machine may be shared); memory is the peak of what Python
allocates, over the text's size.

    python benchmarks/stablehlo.py [--layers 48 --layers 160] [--rounds 7] [-o FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

D, HEADS, HIDDEN, VOCABULARY, LENGTH, BATCH = 256, 4, 1024, 1024, 128, 16


def text(layers: int) -> str:
    """Return the StableHLO of one training step with every layer written out."""
    import jax
    import jax.numpy as jnp

    from jaxscope.capture import texts

    def norm(x, scale):
        y = x.astype(jnp.float32)
        return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale

    def layer(p, x, mask):
        q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, p["ln1"]), p["qkv"])
        scores = jnp.einsum("bthk,bshk->bhts", q, k).astype(jnp.float32) / 8.0
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(x.dtype)
        x = x + jnp.einsum("bhts,bshk,hkd->btd", weights, v, p["o"])
        return x + jax.nn.gelu(norm(x, p["ln2"]) @ p["w1"]) @ p["w2"]

    def loss(params, x, y):
        h = params["emb"][x]
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        for p in params["layers"]:
            h = layer(p, h, mask)
        logits = (h @ params["emb"].T).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    def array(*shape, dtype=jnp.bfloat16):
        return jax.ShapeDtypeStruct(shape, dtype)

    one = {
        "ln1": array(D),
        "ln2": array(D),
        "qkv": array(D, 3, HEADS, D // HEADS),
        "o": array(HEADS, D // HEADS, D),
        "w1": array(D, HIDDEN),
        "w2": array(HIDDEN, D),
    }
    params = {"emb": array(VOCABULARY, D), "layers": [one] * layers}
    tokens = array(BATCH, LENGTH, dtype=jnp.int32)
    return texts.stablehlo(jax.jit(step, donate_argnums=0).lower(params, tokens, tokens).compiler_ir())


def mlir_parse(source: str) -> None:
    from jax.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        ir.Module.parse(source)


def seconds(function, *args) -> float:
    gc.collect()
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def measure(layers: int, rounds: int) -> dict:
    from jaxscope.analysis.stablehlo import reader, reading

    source = text(layers)
    turns = {"read": reader.read, "read and analyze": reading.analyze}
    # The printer elides large constants, and an elided text does not parse again.
    if "__elided__" not in source:
        turns["MLIR's parser"] = mlir_parse
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, function in turns.items():
            times[name].append(seconds(function, source))
    tracemalloc.start()
    result = reading.analyze(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "layers": layers,
        "bytes": len(source),
        "operations": result.printed,
        "repeated": [[r.times, r.length] for r in result.repeated],
        "seconds": {name: round(statistics.median(t), 4) for name, t in times.items()},
        "memory_over_text": round(peak / len(source), 1),
    }


def main() -> None:
    import jax

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", type=Path)
    options = parser.parse_args()
    rows = []
    for layers in options.layers or [12, 48, 160]:
        rows.append(measure(layers, options.rounds))
        print(json.dumps(rows[-1]), file=sys.stderr)
    told = {"jax": jax.__version__, "python": platform.python_version(), "rows": rows}
    if options.o:
        options.o.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
