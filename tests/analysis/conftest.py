"""Real programs lowered by the JAX at hand, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

PRELUDE = """
import json, sys
from functools import partial
import numpy as np
import jax, jax.numpy as jnp
TEXTS, TREES = {}, {}
def tree(op):
    o = op.operation
    return [o.name, [str(v.type) for v in o.operands], [str(v.type) for v in o.results], str(o.location),
            [[tree(c) for b in r.blocks for c in b.operations] for r in o.regions]]
def save(name, function, *args, oracle=False, **kwargs):
    lowered = function.lower(*args, **kwargs)
    module = lowered.compiler_ir()
    TEXTS[name] = module.operation.get_asm(large_elements_limit=16, enable_debug_info=True)
    if oracle:
        TREES[name] = tree(module)
    return lowered
"""
END = "\njson.dump([TEXTS, TREES], open(sys.argv[1], 'w'))\n"


@dataclass
class Lowered:
    """``texts`` by the name given to ``save``; ``trees``: MLIR's own view of the same modules."""

    texts: dict[str, str]
    trees: dict[str, list]
    source: list[str]
    out: str

    def line(self, mark: str) -> int:
        """The line of the program that ends in ``# mark``."""
        found = [n for n, text in enumerate(self.source, 1) if text.rstrip().endswith(f"# {mark}")]
        assert len(found) == 1, (mark, found)
        return found[0]


@pytest.fixture
def lower(tmp_path, clean_env):
    """``lower(code)``: the texts of every ``save(name, jitted, *args)`` in it."""

    def go(code: str, **env: str) -> Lowered:
        program = tmp_path / "user_program.py"
        source = PRELUDE + textwrap.dedent(code) + END
        program.write_text(source)
        done = subprocess.run(
            [sys.executable, str(program), str(tmp_path / "texts.json")],
            env={**clean_env, **env},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        texts, trees = json.loads((tmp_path / "texts.json").read_text())
        return Lowered(texts, trees, source.splitlines(), done.stdout)

    return go


@pytest.fixture
def corpus() -> dict[str, Path]:
    """Twenty lowered programs, by name."""
    data = Path(__file__).parents[1] / "data" / "hlo"
    return {p.name.removesuffix(".stablehlo.mlir.gz"): p for p in sorted(data.glob("*.stablehlo.mlir.gz"))}
