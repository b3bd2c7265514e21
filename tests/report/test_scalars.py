"""Scalars by step, for dashboards."""

import json

import pytest
import runs_to_see
import written

from jaxscope import cli
from jaxscope.model.load import load
from jaxscope.recorded_run import open_run
from jaxscope.report import scalars


def test_each_step_with_a_compilation_has_a_row(tmp_path):
    written.training(tmp_path / "train-1")
    rows = {r["step"]: r for r in open_run(tmp_path / "train-1").metrics()}
    assert (rows[2]["recompiles"], rows[2]["recompiles_by_cause"]) == (2, {"weak_type": 1, "new_function": 1})
    assert rows[376]["recompiles_by_cause"] == {"shape": 1} and rows[376]["compilations"] == 1
    assert rows[376]["compile_seconds"] == pytest.approx(1.4 + 0.3 + 5.3)
    assert rows[1]["peak_bytes"] == 69760 and rows[204]["peak_bytes"] is None
    last = list(rows.values())[-1]
    assert last["total_recompiles"] == sum(r["recompiles"] for r in rows.values()) == 14
    times = [r["time_seconds"] for r in rows.values()]
    assert times == sorted(times)


@pytest.mark.parametrize("name", {**runs_to_see.ALL, **runs_to_see.ELSEWHERE})
def test_every_kind_of_run_has_rows_of_the_same_keys(name, tmp_path):
    run = load({**runs_to_see.ALL, **runs_to_see.ELSEWHERE}[name](tmp_path / "run"))
    rows = [json.loads(line) for line in scalars.lines(run)]
    assert all(row.keys() == set(scalars.Row.__struct_fields__) for row in rows)
    assert bool(rows) == bool(run.compilations) or name in ("failed", "degraded")


def test_the_report_command_writes_them_as_json_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    written.training(tmp_path / "home" / "runs" / "train-1")
    assert cli.command(["report", "--metrics"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(r["recompiles"] for r in rows) == 14
    assert cli.command(["report", "--metrics", "-o", "rows.jsonl"]) == 0
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == len(rows)


@pytest.mark.capture
def test_run_writes_them_at_the_end_and_a_failure_to_write_leaves_the_exit_code(tmp_path, clean_env):
    import subprocess
    import sys

    (tmp_path / "p.py").write_text(
        "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: x + 1)\nf(jnp.ones(2)); f(jnp.ones(3))\n"
    )
    for out, written_to in (("m.jsonl", True), ("no/such/m.jsonl", False)):
        words = ["run", "-q", "-o", f"r{written_to}", "--metrics", out, "p.py"]
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", *words],
            cwd=tmp_path,
            env=clean_env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and ("--metrics: cannot write" in done.stderr) != written_to
    rows = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert sum(r["recompiles_by_cause"].get("shape", 0) for r in rows) == 1
