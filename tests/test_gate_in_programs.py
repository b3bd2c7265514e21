"""Ways to compile late, each in a program that the gate must fail and in a twin that it must pass. A part of them, each
program in a process forked from one; benchmarks/gates.py tries all, and pytest's mark, too."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "gates.py"


@pytest.mark.capture
@pytest.mark.costly
@pytest.mark.long
def test_no_gate_passes_or_fails_wrongly(tmp_path, clean_env):
    command = [sys.executable, str(BENCHMARK), "--short", "--no-pytest"]
    env = {**clean_env, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["wrong"] == [] and found["mechanisms_that_differ"] == []
    assert found["verdicts"] == 4 * found["mechanisms"] >= 100
