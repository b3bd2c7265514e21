"""Modules of known content: their texts, and what XLA's binary form says they hold."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

TESTS = Path(__file__).parents[1]
CASES = TESTS / "data" / "hlo"
TRUTH = json.loads((CASES / "truth.json").read_text())


def case(name: str) -> str:
    return gzip.decompress((CASES / f"{name}.hlo.txt.gz").read_bytes()).decode()


def module(*lines: str, header: str = "HloModule jit_f, is_scheduled=true, num_partitions=8") -> str:
    """A module of one entry computation, one instruction a line."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"{header}\n\nENTRY %main.1 (p: f32[4]) -> f32[4] {{\n{body}\n}}\n"
