"""What is compared where a run for a target stands beside a compilation for it by JAX alone."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jaxscope.analysis.hlo import program

FOR_TPUS = [
    pytest.mark.capture,
    pytest.mark.usefixtures("one_compiler"),
    pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None,
        reason="libtpu is not installed, nothing can be compiled for a TPU: pip install 'jaxscope[tpu]'",
    ),
]
HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "samples" / "train_sharded.py"
PROGRAM = HERE.parent / "programs" / "for_targets.py"


def made_of(text, devices):
    """What the issue compares: fusions by kind, collectives by kind, axes and executions, custom calls, cycles."""
    found = program.analyze(text, mesh=[("data", devices // 4), ("model", 4)])
    assert not found.problems
    collectives = Counter((c.kind, tuple(c.axes or "?"), c.bytes, c.executions) for c in found.collectives)
    return {
        "fusions": (found.fusions.total, found.fusions.by_kind),
        "collectives": collectives,
        "custom calls": found.custom_calls,
        "loops": sorted(loop.trip_count or -1 for loop in found.loops),
        "instructions": found.instructions,
        "cycles": found.estimated_cycles,
    }


def directly(target, folder, env, *names):
    subprocess.run([sys.executable, str(HERE / "direct.py"), target, str(folder), *names], env=env, check=True, timeout=280, capture_output=True)  # fmt: skip
    return {p.stem: p.read_text() for p in folder.glob("*.txt")}
