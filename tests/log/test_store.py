"""Run directories: made, found, removed."""

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.errors import LogError, RunNotFound
from jaxscope.log import store
from jaxscope.log.store import RunDir


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "runs"


def test_a_run_is_found_by_name_by_its_beginning_and_as_the_latest(home):
    first = store.create(name="train")
    (first.path / "meta.json").write_text('{"name": "train", "started": 1}')
    second = store.create(name="other")
    assert store.find().path == store.find("latest").path == second.path
    assert (
        store.find("train").path
        == store.find(first.path.name[:-2]).path
        == store.find(str(first.path)).path
        == first.path
    )


def test_a_name_that_is_none_gets_the_nearest(home):
    store.create(name="train")
    with pytest.raises(RunNotFound) as e:
        store.find("trian")
    assert "train" in e.value.hint


def test_without_any_run_the_error_says_how_to_record_one(home):
    with pytest.raises(RunNotFound, match="no run is recorded") as e:
        store.find()
    assert "jaxscope run" in e.value.hint


def test_a_directory_that_is_no_run_is_neither_opened_nor_removed(home, tmp_path):
    (tmp_path / "precious").mkdir()
    with pytest.raises(RunNotFound, match="not a jaxscope run"):
        store.find(str(tmp_path / "precious"))
    with pytest.raises(LogError, match="nothing was removed"):
        RunDir(tmp_path / "precious").remove()
    assert (tmp_path / "precious").is_dir()


def test_a_text_is_stored_once_and_comes_back(tmp_path):
    run = store.create(tmp_path / "run")
    blob, size = run.put_text("module é\n")
    assert run.put_text("module é\n") == (blob, size)
    assert run.text(blob) == "module é\n" and size == 10
    assert len(list((tmp_path / "run" / "blobs").iterdir())) == 1


def test_a_damaged_or_misnamed_text_is_an_error_not_a_wrong_text(tmp_path):
    run = store.create(tmp_path / "run")
    blob, _ = run.put_text("one")
    (tmp_path / "run" / "blobs" / f"{blob}.zst").write_bytes(zstandard.compress(b"two"))
    with pytest.raises(LogError, match="damaged"):
        run.text(blob)
    with pytest.raises(LogError, match="not a text's hash"):
        run.text("../../etc/passwd")
    with pytest.raises(LogError, match="cannot be read"):
        run.text("0" * 64)


def test_a_second_run_in_one_directory_is_refused(tmp_path):
    store.create(tmp_path / "run")
    with pytest.raises(LogError, match="already holds a recorded run"):
        store.create(tmp_path / "run")


def test_metadata_that_is_damaged_is_empty(tmp_path):
    run = store.create(tmp_path / "run")
    for text in ("", "[]", '{"name":', "\xff"):
        (run.path / "meta.json").write_text(text, encoding="latin-1")
        assert run.meta == {}
    assert run.name == "run"


@given(st.text())
def test_a_clean_name_is_always_a_plain_file_name(text):
    name = store.clean_name(text)
    assert name and "/" not in name and name not in (".", "..") and len(os.fsencode(name)) <= 120
