"""A run keeps copies of the user's source files: its reports show the source as it was."""

from pathlib import Path

import pytest

from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

PROGRAM = """import jax

API_TOKEN = "hf_0123456789abcdefABCDEF"


@jax.jit
def f(x):
    return x + 1


f(1.0)
"""


@pytest.fixture
def written(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    return file


def the_copy(recorded, file: Path):
    (seen,) = [e for e in recorded.of(ev.SourceSeen) if e.file == str(file)]
    return seen.copy


def test_a_report_shows_the_source_as_it_was_recorded(record, written):
    recorded = record(written)
    written.write_text("# a new line\n" + PROGRAM)
    run = load(recorded.run)
    assert the_copy(recorded, written) is not None
    assert sources.of(run)(str(written)).splitlines()[10] == "f(1.0)"


def test_comments_are_read_from_the_present_file(record, written, monkeypatch):
    recorded = record(written)
    monkeypatch.chdir(written.parent)
    written.write_text(PROGRAM + "# jaxscope: ignore\n")
    assert sources.now(load(recorded.run))(str(written)).endswith("# jaxscope: ignore\n")


def test_what_looks_like_a_secret_is_not_copied(record, written):
    text = sources.of(load(record(written).run))(str(written))
    assert "hf_01" not in text and len(text.splitlines()) == len(PROGRAM.splitlines())


def test_redaction_copies_no_source(record, written):
    recorded = record(written, redact=True)
    assert the_copy(recorded, written) is None
    assert not any("x + 1" in recorded.run.text(p.stem) for p in (recorded.run.path / "blobs").glob("*.zst"))
