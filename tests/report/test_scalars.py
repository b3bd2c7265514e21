"""Scalars by step, for dashboards."""

import csv
import importlib.machinery
import importlib.util
import json
import sys
import types
from types import SimpleNamespace

import handwritten_runs
import pytest
import screen_runs

from jaxscope import cli
from jaxscope.cli import run as cli_run
from jaxscope.model.load import load
from jaxscope.recorded_run import open_run
from jaxscope.report import scalars


def test_each_step_with_a_compilation_has_a_row(tmp_path):
    handwritten_runs.training(tmp_path / "train-1")
    rows = {r["step"]: r for r in open_run(tmp_path / "train-1").metrics()}
    assert (rows[2]["recompiles"], rows[2]["recompiles_by_cause"]) == (2, {"weak_type": 1, "new_function": 1})
    assert rows[376]["recompiles_by_cause"] == {"shape": 1} and rows[376]["compilations"] == 1
    assert rows[376]["compile_seconds"] == pytest.approx(1.4 + 0.3 + 5.3)
    assert rows[1]["peak_bytes"] == 69760 and rows[204]["peak_bytes"] is None
    last = list(rows.values())[-1]
    assert last["total_recompiles"] == sum(r["recompiles"] for r in rows.values()) == 14
    times = [r["time_seconds"] for r in rows.values()]
    assert times == sorted(times)


@pytest.mark.parametrize("name", {**screen_runs.ALL, **screen_runs.ELSEWHERE})
def test_every_kind_of_run_has_rows_of_the_same_keys(name, tmp_path):
    run = load({**screen_runs.ALL, **screen_runs.ELSEWHERE}[name](tmp_path / "run"))
    rows = [json.loads(line) for line in scalars.lines(run)]
    assert all(row.keys() == set(scalars.Row.__struct_fields__) for row in rows)
    assert bool(rows) == bool(run.compilations) or name in ("failed", "degraded")


def test_the_report_command_writes_them_as_json_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    handwritten_runs.training(tmp_path / "home" / "runs" / "train-1")
    assert cli.command(["report", "--metrics"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(r["recompiles"] for r in rows) == 14
    assert cli.command(["report", "--metrics", "-o", "rows.jsonl"]) == 0
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == len(rows)


def rows_of(path):
    """The rows of a CSV file, without its empty cells."""
    with path.open(newline="") as f:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(f)]


@pytest.fixture
def training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return handwritten_runs.training(tmp_path / "train-1")


def test_a_csv_file_has_the_same_figures_with_a_column_for_each_cause(training, tmp_path):
    assert cli.command(["report", "train-1", "--metrics", "-o", "m.csv"]) == 0
    rows = {row.get("step"): row for row in rows_of(tmp_path / "m.csv")}
    assert rows[376]["recompiles/shape"] == 1 and rows[376]["recompiles/dtype"] == 0
    assert rows[1]["peak_bytes"] == 69760 and "peak_bytes" not in rows[204]  # not known: an empty cell
    expected = open_run(training.path).metrics()
    assert [r["compile_seconds"] for r in expected] == [r["compile_seconds"] for r in rows.values()]
    assert sum(v for row in rows.values() for k, v in row.items() if k.startswith("recompiles/")) == 14


def test_the_rows_fit_the_schema(training):
    from jsonschema import Draft202012Validator

    schema = scalars.schema()
    Draft202012Validator.check_schema(schema)
    for line in scalars.lines(load(training)):
        Draft202012Validator(schema).validate(json.loads(line))


def test_tensorboard_reads_the_figures_back(training, tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX writes the event file")
    pytest.importorskip("tensorboard", reason="TensorBoard reads it")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert cli.command(["report", "train-1", "--metrics", "-o", "tensorboard:tb/exp1"]) == 0
    read = EventAccumulator(str(tmp_path / "tb" / "exp1"))
    read.Reload()
    run = open_run(training.path)
    for name in ("compile_seconds", "live_bytes", "peak_bytes", "total_recompiles"):
        expected = [(r["step"], r[name]) for r in run.metrics() if r[name] is not None]
        found = [] if not expected else read.Scalars(f"jaxscope/{name}")
        assert [e.step for e in found] == [step or 0 for step, _ in expected]
        assert [e.value for e in found] == pytest.approx([value for _, value in expected], rel=1e-6)
    [shape] = [e for e in read.Scalars("jaxscope/recompiles/shape") if e.step == 376]
    assert shape.value == 1
    seconds = next(r["time_seconds"] for r in run.metrics() if r["step"] == 376)
    assert shape.wall_time == pytest.approx(run.began_ns / 1e9 + seconds)


class FakeWandb(types.ModuleType):
    """What is called of wandb, without its server."""

    def __init__(self):
        super().__init__("wandb")
        self.__spec__ = importlib.machinery.ModuleSpec("wandb", None)
        self.rows, self.metrics, self.finished = [], {}, False

    def init(self, **options):
        self.options = options
        return self

    def define_metric(self, name, step_metric=None):
        self.metrics[name] = step_metric

    def log(self, row):
        self.rows.append(row)

    def finish(self):
        self.finished = True


def test_weights_and_biases_is_given_rows_over_the_steps_of_the_program(training, monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    assert cli.command(["report", "train-1", "--metrics", "-o", "wandb"]) == 0
    assert fake.finished and fake.options["name"] == "train-1"
    assert fake.metrics == {"jaxscope/step": None, "jaxscope/*": "jaxscope/step"}
    by_step = {row.get("jaxscope/step"): row for row in fake.rows}
    assert by_step[376]["jaxscope/recompiles/shape"] == 1 and "jaxscope/peak_bytes" not in by_step[204]


@pytest.mark.parametrize("where", ["tensorboard:d", "wandb"])
def test_a_dashboard_whose_package_is_missing_is_refused_before_the_program_runs(
    where, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.command(["run", "--metrics", where, "-c", "open('ran', 'w')"]) == 2
    said = capsys.readouterr().err
    assert "needs the package" in said and "pip install 'jaxscope[" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.subprocess
@pytest.mark.parametrize("rank", [0, 1])
def test_of_a_job_rank_0_writes_them(rank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(cli_run, "_write_metrics", lambda where, record, read: asked.append(where))
    monkeypatch.setattr(cli_run.job, "here", lambda name=None: SimpleNamespace(rank=rank, size=2))
    monkeypatch.setattr(cli_run, "_make_run", lambda each, opts: None)  # run without a recording
    cli.command(["run", "-q", "--metrics", "m.jsonl", "-c", "pass"])
    assert asked == ["m.jsonl" if rank == 0 else None]


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
