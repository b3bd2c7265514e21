"""Texts are read when somebody asks, each program once, and not again when the run is opened a second time.

Counted, not timed; benchmarks/report.py has the clock.
"""

import io
import shutil

import msgspec
import pytest

from jaxscope.analysis import programs
from jaxscope.analysis.hlo.branches import Bounds
from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.report.console import console
from jaxscope.report.json_report import as_json
from jaxscope.report.text import render

pytestmark = pytest.mark.capture

PROGRAM = """
import jax, jax.numpy as jnp

@jax.jit
def step(w, x):
    for _ in range(4):
        x = jnp.tanh(x @ w)
    return x.sum()

@jax.jit
def other(x):
    return jnp.cos(x) * 2

for n in range(1, 7):
    step(jnp.ones((8, 8)), jnp.ones((n, 8)))
    other(jnp.ones(n))
step(jnp.ones((8, 8)), jnp.ones((3, 8)))
"""
OURS = 12  # programs with texts: six shapes of two functions


@pytest.fixture(scope="module")
def recorded(record_module):
    return record_module(PROGRAM).run


@pytest.fixture
def directory(recorded, tmp_path):
    shutil.copytree(recorded.path, tmp_path / "run", ignore=shutil.ignore_patterns("derived"))
    return RunDir(tmp_path / "run")


@pytest.fixture
def analyzed(monkeypatch):
    """The HLO texts read so far, in order."""
    found = []
    analyze = programs.analyze

    def counting(hlo_text, stablehlo_text, around=None):
        found.append(hlo_text)
        return analyze(hlo_text, stablehlo_text, around)

    monkeypatch.setattr(programs, "analyze", counting)
    return found


class Watched(io.StringIO):
    """Remembers how many texts had been read when the first line was written."""

    def __init__(self, analyzed):
        super().__init__()
        self.analyzed = analyzed
        self.at_first_line = None

    def write(self, text):
        if self.at_first_line is None and text.strip():
            self.at_first_line = len(self.analyzed)
        return super().write(text)


def page(directory, analyzed):
    out = Watched(analyzed)
    render(load(directory), console(out, width=80), directory)
    return out


def test_opening_a_run_reads_no_text(directory, analyzed):
    run = load(directory)
    assert sum(bool(p.texts) for p in run.programs.values()) == OURS
    assert analyzed == []


def test_the_report_begins_before_any_text_is_read(directory, analyzed):
    assert page(directory, analyzed).at_first_line == 0
    assert 0 < len(analyzed) <= OURS


def test_each_program_is_read_once_however_often_it_was_compiled_or_is_requested(directory, analyzed):
    run = load(directory)
    first, second = as_json(run, directory), as_json(run, directory)
    assert first == second
    assert len(analyzed) == len(set(analyzed)) == OURS


def test_opened_again_nothing_is_read_and_the_same_is_reported(directory, analyzed):
    first, told = page(directory, analyzed).getvalue(), as_json(load(directory), directory)
    assert len(analyzed) == OURS
    assert page(directory, analyzed).getvalue() == first
    assert as_json(load(directory), directory) == told
    assert len(analyzed) == OURS


def test_the_cache_may_be_deleted_or_damaged_at_any_time(directory, analyzed):
    told = as_json(load(directory), directory)
    kept = sorted((directory.path / "derived").iterdir())
    assert len(kept) == OURS
    kept[0].unlink()
    kept[1].write_bytes(kept[1].read_bytes()[:40])
    kept[2].write_bytes(b"")
    assert as_json(load(directory), directory) == told
    assert len(analyzed) == OURS + 3
    shutil.rmtree(directory.path / "derived")
    assert as_json(load(directory), directory) == told
    assert len(analyzed) == 2 * OURS + 3


def test_another_version_of_the_analysis_reads_again(directory, analyzed, monkeypatch):
    as_json(load(directory), directory)
    monkeypatch.setattr(programs, "VERSION", programs.VERSION + 1)
    as_json(load(directory), directory)
    assert len(analyzed) == 2 * OURS


def test_a_run_that_cannot_be_written_to_is_read_all_the_same(directory, analyzed):
    (directory.path / "derived").write_text("a file in the way")
    told = as_json(load(directory), directory)
    assert as_json(load(directory), directory) == told
    assert len(analyzed) == 2 * OURS


def test_a_program_of_more_flops_than_a_file_can_hold_is_read_all_the_same(directory, monkeypatch):
    analyze = programs.analyze

    def many(*texts):
        found = analyze(*texts)
        return msgspec.structs.replace(
            found, hlo=msgspec.structs.replace(found.hlo, flops=Bounds(2**70, 2**70))
        )

    monkeypatch.setattr(programs, "analyze", many)
    run = load(directory)
    program = next(p for p in run.programs.values() if "hlo" in p.texts)
    assert run.texts_of(program).hlo.matrix_flops == 2**70
