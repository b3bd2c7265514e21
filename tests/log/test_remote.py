"""Runs in a store: uploaded in pieces while they are written, downloaded with only the names of a run."""

import json
import os

import pytest

from jaxscope.cli import command
from jaxscope.errors import JaxscopeError, LogError, RunNotFound
from jaxscope.log import ranks, remote, removal, store
from jaxscope.log.store import RunDir

pytest.importorskip("fsspec")


@pytest.fixture
def run(tmp_path):
    found = store.create(tmp_path / "run", name="train")
    log = found.events / "12-ab.jsonl"
    log.write_bytes(b"".join(b'{"kind":"X","n":%06d}\n' % n for n in range(1000)))
    log.with_suffix(".counts").write_bytes(bytes(64))
    found.put_text("module @step {}")
    return found


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/bucket/run"


@pytest.fixture
def fetched(tmp_path):
    def fetch(url):
        remote.fetched.cache_clear()  # as in another command
        return RunDir(remote.fetched(url, tmp_path / "home"))

    return fetch


def uploaded(path, url, **more):
    found = remote.Upload(path, url, **more)
    found.round()
    return found


def contents(path):
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_a_run_comes_back_as_it_was_and_a_large_file_of_it_in_pieces(
    run, url, tmp_path, fetched, monkeypatch
):
    monkeypatch.setattr(remote, "PIECE", 5000)
    uploaded(run.path, url)
    pieces = sorted(p.name for p in (tmp_path / "bucket" / "run" / "events").glob("*jsonl*"))
    assert pieces == ["12-ab.jsonl", *(f"12-ab.jsonl+{n}" for n in range(1, 5))]
    assert max(p.stat().st_size for p in (tmp_path / "bucket").rglob("*") if p.is_file()) <= 5000
    assert contents(fetched(url).path) == contents(run.path)


def test_without_a_piece_the_file_ends_before_it(run, url, tmp_path, fetched, monkeypatch):
    monkeypatch.setattr(remote, "PIECE", 5000)
    uploaded(run.path, url)
    (tmp_path / "bucket" / "run" / "events" / "12-ab.jsonl+2").unlink()
    log = (run.events / "12-ab.jsonl").read_bytes()
    assert (fetched(url).events / "12-ab.jsonl").read_bytes() == log[:10_000]


def test_only_what_is_new_is_sent_again_also_by_another_process(run, url, fetched, monkeypatch):
    monkeypatch.setattr(remote, "PIECE", 5000)
    uploading = uploaded(run.path, url)
    before = uploading.sent
    with (run.events / "12-ab.jsonl").open("ab") as log:
        log.write(b'{"kind":"Y"}\n')
    uploading.round()
    last = (run.events / "12-ab.jsonl").stat().st_size % 5000
    assert uploading.sent - before == last and uploading.left == (0, 0)
    small = sum(
        len(data) for name, data in contents(run.path).items() if name.endswith(("counts", "meta.json"))
    )
    assert uploaded(run.path, url).sent == small
    assert contents(fetched(url).path) == contents(run.path)
    (run.events / "12-ab.counts").write_bytes(bytes(65))
    uploading.round()
    assert contents(fetched(url).path) == contents(run.path)


def test_another_run_is_not_replaced_unless_that_is_requested(run, url, tmp_path, fetched):
    uploaded(run.path, url)
    other = store.create(tmp_path / "other", name="other")
    with pytest.raises(LogError, match="already contains another recorded run"):
        uploaded(other.path, url)
    assert fetched(url).name == "train"
    uploaded(other.path, url, overwrite=True)
    assert contents(fetched(url).path) == contents(other.path)


def test_ranks_without_a_shared_directory_make_one_run_in_the_store(tmp_path, url, fetched):
    for rank in range(3):
        place = ranks.join(tmp_path / f"host{rank}" / "j", "job-1", rank, 3, name="train")
        blob, _ = place.put_text("the same in all ranks")
        uploaded(place.path, url)
    whole = fetched(url)
    assert [ranks.number(r) for r in store.rank_runs(whole)] == [0, 1, 2] and whole.meta["ranks"] == 3
    assert store.rank_runs(whole)[2].text(blob) == "the same in all ranks"
    assert fetched(f"{url}/ranks/00001").path == whole.path / "ranks" / "00001"
    with pytest.raises(LogError, match="another recorded run"):
        uploaded(ranks.join(tmp_path / "later", "job-2", 0, 3, name="train").path, url)


def test_names_that_are_not_of_a_run_are_not_downloaded(run, url, tmp_path, fetched):
    uploaded(run.path, url)
    there = tmp_path / "bucket" / "run"
    for name in (
        "events/12-ab.sh",
        "sub/.x/y",
        ".bashrc",
        "events/a/b.jsonl",
        "ranks/00001/sub/a/b/meta.json",
    ):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text("x")
    assert contents(fetched(url).path) == contents(run.path)
    for name in (
        "../meta.json",
        "sub/../../meta.json",
        "sub/..",
        "events//1-a.jsonl",
        "/meta.json",
        "a/meta.json",
    ):
        assert remote._own(name) is None, name


def test_a_copy_that_is_a_link_is_not_written_through(run, url, tmp_path, fetched):
    uploaded(run.path, url)
    path = fetched(url).path
    outside = tmp_path / "outside"
    outside.mkdir()
    for each in (path / "events").iterdir():
        each.unlink()
    (path / "events").rmdir()
    (path / "events").symlink_to(outside)
    with pytest.raises((LogError, OSError)):
        fetched(url)
    assert not list(outside.iterdir())


def test_a_run_that_is_too_large_is_not_downloaded(run, url, fetched, monkeypatch):
    uploaded(run.path, url)
    monkeypatch.setattr(remote, "MOST_BYTES", 1000)
    with pytest.raises(LogError, match="at most"):
        fetched(url)


def test_the_copies_that_were_made_first_are_removed(run, tmp_path, fetched, monkeypatch):
    monkeypatch.setattr(remote, "KEPT", 2)
    for n in range(4):
        uploaded(run.path, f"file://{tmp_path}/bucket/{n}")
        path = fetched(f"file://{tmp_path}/bucket/{n}").path
        os.utime(path, (n, n))
    assert sorted(p.name[:1] for p in (tmp_path / "home").iterdir()) == [".", "2", "3"]


def test_where_there_is_no_run_or_no_package_it_is_an_error_with_the_way_out(tmp_path, fetched, monkeypatch):
    with pytest.raises(RunNotFound):
        fetched(f"file://{tmp_path}/nothing")
    monkeypatch.setattr(remote.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JaxscopeError) as e:
        fetched("s3://bucket/run")
    assert e.value.hint == "pip install 'jaxscope[remote]'" and e.value.slug == "remote-missing"


def test_a_run_into_a_store_without_its_package_ends_before_the_program_starts(monkeypatch, capsys):
    monkeypatch.setattr(remote.importlib.util, "find_spec", lambda name: name == "fsspec" or None)
    assert command(["run", "-o", "s3://bucket/run", "-c", "print('started')"]) == 2
    printed = capsys.readouterr()
    assert "started" not in printed.out and "s3fs, which is not installed" in printed.err
    assert command(["run", "-o", "nostore://bucket/run", "-c", "print('started')"]) == 2
    assert "fsspec has no store nostore://" in capsys.readouterr().err


@pytest.mark.timeout(0)  # it has a timer of its own
def test_a_call_that_is_not_answered_ends(monkeypatch):
    import time

    monkeypatch.setattr(remote, "CALL_S", 0.1)
    with pytest.raises(OSError, match="no answer"):
        remote._call(lambda: time.sleep(30))


def test_the_state_of_the_upload_is_a_file_of_the_run_and_is_removed_with_it(run):
    (run.path / removal.UPLOAD).write_text(json.dumps({"sent": 1}))
    assert run.remove() == [] and not run.path.exists()
