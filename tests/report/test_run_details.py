"""One function, program or array of a run, as a notebook draws it and a terminal prints it."""

import html

import pytest
import screen_runs
from test_html_report import MARKUP, Document, full_of_markup

import jaxscope
from jaxscope.errors import JaxscopeError


def drawn(part):
    shown = part._repr_html_()
    assert shown.startswith('<iframe srcdoc="') and shown.count("<") == 2 and 'sandbox=""' in shown
    document = Document(html.unescape(shown.partition('srcdoc="')[2].partition('" sandbox')[0]))
    assert not document.of("script")
    return document.text


def test_a_function_a_program_an_array_and_a_sharding_are_drawn_and_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a notebook's kernel sets it; the text of an object has no colors
    run = jaxscope.open_run(screen_runs.typical(tmp_path / "run").path)
    function, program = run.function("train_step"), run.program("train_step#2")
    array = run.array("batch['x']")
    assert function.record.compiled == 3 and program.compilation is run.numbered(function.record)[1][1]
    assert run.program("train_step").name == "train_step #3"  # the latest
    assert "x changed from f32[31,4] to f32[30,4]" in repr(function)
    assert "part of the key" in drawn(function)
    assert "arguments 4.0 KiB" in repr(program) and "cost of one call on one device by line" in drawn(program)
    assert repr(array).startswith("batch['x']  float32[512,64]\n")
    assert repr(array).endswith("\n  128.0 KiB on all devices, created at train.py:11")
    assert "128.0 KiB on all devices" in drawn(array) and array.record.count == 1
    for part in (array, array.sharding):
        assert "[64:128, :]" in drawn(part) and "model 1" in drawn(part)
    assert "1 [64:128, :]" in repr(array.sharding) and array.sharding.record.spec == "P(('data', 'model'),)"
    whole = "state.params['dense']['bias']"  # the same on every device
    assert whole in drawn(run.array(whole))


def test_markup_in_the_name_of_a_part_is_text(tmp_path):
    run = jaxscope.open_run(full_of_markup(tmp_path / "run").path)
    function = next(f for f in run.functions.values() if f.user)
    paths = [g.path for e in run.main.snapshots for g in e.groups if MARKUP in (g.path or "")]
    for part in (run.function(function.id), run.program(function.id), run.array(paths[0])):
        assert "<script>alert(1)" in drawn(part)


@pytest.mark.parametrize("ask", ["function", "program", "array"])
def test_a_part_that_is_none_is_an_error_with_similar_names(ask, tmp_path):
    run = jaxscope.open_run(screen_runs.typical(tmp_path / "run").path)
    with pytest.raises(JaxscopeError) as caught:
        getattr(run, ask)("batch['z']")
    assert "batch['x']" in caught.value.hint if ask == "array" else "train_step" in caught.value.hint
    with pytest.raises(JaxscopeError):
        run.program("train_step#9")
