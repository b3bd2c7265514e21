"""A recorded run in code."""

import handwritten_runs
import pytest

import jaxscope
from jaxscope.errors import JaxscopeError


def test_a_run_can_be_requested_what_follows_from_it(tmp_path):
    run = jaxscope.open_run(handwritten_runs.training(tmp_path / "run").path)
    assert len(run.functions) == 5 and run.compilations
    assert run.findings[0].code == "JX103" and run.findings[0].seconds == 8.6
    assert {e.cause for e in run.ledger} >= {"first", "shape", "weak_type", "dtype", "new_function"}
    step = next(f for f in run.functions.values() if f.name == "train_step")
    last = step.compilations[3]
    assert [(c.kind, c.path) for c in run.causes(last)] == [("shape", "batch['ids']")]
    assert run.predictions == []


def test_a_notebook_shows_the_report_of_a_run_and_of_a_recording(tmp_path):
    run = jaxscope.open_run(handwritten_runs.training(tmp_path / "run").path)
    shown = run._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count("<") == 2  # the document is an attribute
    assert "train_step" in shown and 'sandbox="allow-scripts"' in shown
    assert jaxscope.record(tmp_path / "none")._repr_html_() is None  # nothing has been recorded


def test_a_name_that_is_none_is_reported_with_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path))
    with pytest.raises(JaxscopeError):
        jaxscope.open_run("nosuch")


def test_the_report_of_a_recording_takes_no_other_directory(tmp_path):
    with pytest.raises(TypeError, match=r"report\(\) got an unexpected keyword argument 'directory'"):
        jaxscope.record(tmp_path / "none").report(directory=tmp_path)
