"""Run directories: made, found, removed."""

import json
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
    with pytest.raises(LogError, match="is not the hash of a recorded text"):
        run.text("../../etc/passwd")
    with pytest.raises(LogError, match="cannot be read"):
        run.text("0" * 64)


def test_a_second_run_in_one_directory_is_refused(tmp_path):
    store.create(tmp_path / "run")
    with pytest.raises(LogError, match="already contains a recorded run"):
        store.create(tmp_path / "run")


def test_metadata_that_is_damaged_is_empty(tmp_path):
    run = store.create(tmp_path / "run")
    for text in ("", "[]", '{"name":', "\xff"):
        (run.path / "meta.json").write_text(text, encoding="latin-1")
        assert run.meta == {}
    assert run.name == "run"


@pytest.mark.parametrize("argv", [None, "train.py", ["train.py", 1.5], [["train.py"]]])
def test_a_command_line_that_is_not_words_is_unknown(tmp_path, argv):
    run = store.create(tmp_path / "run")
    (run.path / "meta.json").write_text(json.dumps({"argv": argv}))
    assert run.argv is None


@given(st.text())
def test_a_clean_name_is_always_a_plain_file_name(text):
    name = store.clean_name(text)
    assert name and "/" not in name and name not in (".", "..") and len(os.fsencode(name)) <= 120


def varied(home, *settings):
    """A run of one program under several settings, as --vary makes it."""
    run = store.create(name="train", settings=settings[0])
    for each in settings[1:]:
        label = " ".join(f"{k}={v}" for k, v in each.items())
        store.create(store.sub_run(run, label), name=f"train@{label}", settings=each)
    return run


def test_a_run_within_another_is_found_by_its_setting_and_by_its_directory(home):
    run = varied(home, {"MESH": "8x1"}, {"MESH": "4x2"}, {"MESH": "conf/a.py"})
    one, two = store.sub_runs(run)
    for which in ("latest/MESH=4x2", "train/MESH=4x2", f"{run.path.name}/MESH=4", f"{run.path}/MESH=4x2", store.address(one)):  # fmt: skip
        assert store.find(which).path == one.path
    assert store.find("train/MESH=conf/a.py").path == store.find("latest/MESH=conf-a.py").path == two.path
    assert store.find("train/MESH=8x1").path == run.path and store.parent_of(one).path == run.path
    assert [r.path for r in store.all_runs()] == [run.path]


def test_a_run_within_another_is_called_by_its_settings_as_they_were_typed_or_by_its_directory(home):
    run = varied(home, {"--model": "2"}, {"--model": "4"}, {"--model": "8"}, {"--model": "8"}, {"A": "\x1b"})
    names = [store.address(r).removeprefix(f"{run.path.name}/") for r in store.sub_runs(run)]
    assert names[:3] == ["--model=4", "model=8", "model=8~2"] and "\x1b" not in names[3]
    assert [store.find(store.address(r)).path for r in store.sub_runs(run)] == [
        r.path for r in store.sub_runs(run)
    ]
    with pytest.raises(RunNotFound) as e:
        store.find("train/x")
    assert "--model=2, --model=4, model=8, model=8~2" in e.value.hint


def test_a_name_that_is_none_within_a_run_gets_those_there_are(home):
    run = varied(home, {"MESH": "8x1"}, {"MESH": "4x2"})
    for wrong in ("MESH", "nope", ""):
        with pytest.raises(RunNotFound) as e:
            store.find(f"train/{wrong}")
        assert "MESH=8x1, MESH=4x2" in e.value.hint
    other = store.create(name="other")
    with pytest.raises(RunNotFound) as e:
        store.find("other/MESH=8x1")
    assert "has no runs within it" in e.value.hint and store.sub_runs(other) == []
    with pytest.raises(RunNotFound):
        store.find("no-such-run/MESH=8x1")
    assert store.label_of(run) == "MESH=8x1"


def test_runs_within_runs_go_one_deep_and_never_in_a_circle(home):
    run = varied(home, {"A": "1"}, {"A": "2"})
    (inner,) = store.sub_runs(run)
    store.create(store.sub_run(inner, "deeper"))
    (run.path / "sub" / "round").symlink_to(run.path)
    assert [r.path for r in store.sub_runs(run)] == [inner.path] and store.sub_runs(inner) == []


@pytest.mark.parametrize("settings", ["x", ["A"], {"A": 1}, {"A": {"B": 2}}, None])
def test_settings_that_are_none_are_none(home, settings):
    run = store.create(name="odd", settings=settings)
    assert run.settings == [] and store.label_of(run) == ""


@given(st.text(max_size=200))
def test_every_label_is_a_directory_of_its_own_within_the_run(label):
    run = RunDir("/somewhere/run")
    path = store.sub_run(run, label)
    assert path.parent == run.path / "sub" and path.name not in ("", ".", "..")
    assert len(os.fsencode(path.name)) <= 255
