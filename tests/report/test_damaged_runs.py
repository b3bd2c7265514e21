"""What is missing of a run, or written by another jaxscope, is said in its report."""

import io
import json
import shutil

import pytest
from handwritten_runs import Log, exited, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report.text import print_report

F = function("train_step")
HLO = "HloModule jit_f\n\nENTRY main {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"


@pytest.fixture
def run(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    log.compiled(F, key(leaf("x", 4)), program="aa", texts={"hlo": HLO})
    log.end()
    exited(run)
    return run


def page(run):
    to = io.StringIO()
    print_report(load(run), file=to, directory=run)
    return " ".join(to.getvalue().split())


def test_a_whole_run_has_nothing_to_say_of_damage(run):
    assert "Damaged" not in page(run) and "schema" not in page(run)


@pytest.mark.parametrize(
    "how", [lambda p: p.write_bytes(b"no archive"), lambda p: p.unlink()], ids=["damaged", "gone"]
)
def test_texts_that_cannot_be_read_are_counted_each_time(run, how):
    [blob] = (run.path / "blobs").iterdir()
    how(blob)
    for _ in range(2):  # what was made without them is not kept
        assert "Damaged 1 program text could not be read" in page(run)


def test_a_text_that_is_there_again_is_read(run):
    [blob] = (run.path / "blobs").iterdir()
    data = blob.read_bytes()
    blob.write_bytes(b"no archive")
    page(run)
    blob.write_bytes(data)
    assert "Damaged" not in page(run)


def test_a_run_without_its_logs_is_not_taken_for_a_program_without_jax(run):
    shutil.rmtree(run.events)
    said = page(run)
    assert "The run is incomplete: it has no events/ directory." in said and "import jax?" not in said


@pytest.mark.parametrize("schema", [99, "x\x1b[2J", None, [1]])
def test_a_run_of_another_schema_says_so(run, schema):
    meta = run.path / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "schema": schema}))
    said = page(run)
    assert "Not understood the run has schema" in said and "this jaxscope reads schema 1" in said
    assert "\x1b" not in said
