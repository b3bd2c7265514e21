"""What is read of a run has an end."""

import hashlib
import os

import pytest
import zstandard

from jaxscope.errors import LogError
from jaxscope.log import reader, store
from jaxscope.schema import events as ev

STEP = b'{"kind":"Step","index":%d}\n'


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def log(run, data):
    path = run.events / "1-a.jsonl"
    with path.open("ab") as f:
        f.write(data)
    return path


def steps(found):
    return [e.index for e in found if isinstance(e, ev.Step)]


def test_a_line_that_is_too_long_is_passed_over_and_counts_as_damaged(run, monkeypatch):
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 1000)
    log(run, STEP % 1 + b"x" * 5000 + b"\n" + STEP % 2 + b"y" * 900 + b"\n" + STEP % 3)
    found = reader.Reader(run)
    assert steps(found.poll()) == [1, 2, 3] and found.damaged == 2


@pytest.mark.parametrize("size", [100, 1000, 1 << 20])
def test_a_line_too_long_may_come_in_parts(run, monkeypatch, size):
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(reader, "CHUNK", size)
    found = reader._File(log(run, STEP % 1 + b"x" * 2500), run.path)

    def read():
        return steps(e for piece in found.pieces(size=size) for e in piece)

    assert read() == [1]
    log(run, b"x" * 2500)
    assert read() == []
    log(run, b"\n" + STEP % 2 + b'{"kind":"St')
    assert read() == [2] and found.damaged == 1
    log(run, b'ep","index":3}\n')
    assert read() == [3] and found.damaged == 1


def test_a_line_without_an_end_is_read_once(run, monkeypatch):
    path = log(run, b"")
    os.truncate(path, 8 << 20)
    asked = []
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 1 << 20)
    found = reader._File(path, run.path, lambda: not asked.append(1))
    assert not list(found.pieces()) and len(asked) <= 9
    before = len(asked)
    assert not list(found.pieces()) and len(asked) == before


def test_where_there_is_no_memory_the_rest_is_one_damaged_line(run):
    found = reader._File(log(run, STEP % 1), run.path, lambda: False)
    assert not list(found.pieces()) and found.damaged == 1
    log(run, STEP % 2)
    assert not list(found.pieces()) and found.damaged == 1


def test_of_a_large_event_of_a_kind_that_is_not_known_its_kind_and_time_are_kept(run):
    log(run, b'{"kind":"Dreamt","t_ns":7,"a":[' + b"[]," * 100_000 + b"[]]}\n")
    [event] = reader.Reader(run).poll()
    assert isinstance(event, ev.Unknown) and (event.kind, event.t_ns) == ("Dreamt", 7)
    assert "a" not in event.raw


def text(run, data, claimed=None):
    name = hashlib.sha256(data).hexdigest() if claimed is None else claimed
    (run.path / "blobs" / f"{name}.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
    return name


def test_a_text_is_read_up_to_a_limit_and_all_of_it_where_everything_is_wanted(run, monkeypatch):
    blob = text(run, bytes(3 << 20))
    assert len(run.data(blob)) == 3 << 20
    with pytest.raises(LogError, match="larger than 2 MiB"):
        run.data(blob, 2 << 20)
    run.everything = True
    assert len(run.data(blob, 2 << 20)) == 3 << 20
    monkeypatch.setattr(store, "MAX_TEXT_LINES", 10)
    lines = text(run, b"\n" * 11)
    assert len(run.data(lines)) == 11
    run.everything = False
    with pytest.raises(LogError, match="larger than 10 lines"):
        run.data(lines)


def test_a_text_that_is_no_utf_8_is_a_text_all_the_same(run):
    assert run.text(text(run, b"a\xff\xed\xa0\x80")) == r"a\xff\xed\xa0\x80"


@pytest.mark.parametrize(
    "started", ["1" + "0" * 400, "1e999", "-1e999", "1e300", '"x"', "[1]", "true", "NaN"]
)
def test_a_start_that_is_no_time_is_not_known(run, started):
    (run.path / "meta.json").write_text(f'{{"name":["x"],"started":{started}}}')
    read = store.RunDir(run.path)
    assert read.started in (0.0, 1.0) and read.name == "run"


def test_a_run_is_looked_for_through_no_link_below_it(run, tmp_path):
    other = store.create(tmp_path / "other")
    (run.path / "sub").mkdir()
    (run.path / "sub" / "x").symlink_to(other.path)
    assert store.sub_runs(run) == []
    (run.path / "sub" / "x").unlink()
    (run.path / "sub").rmdir()
    (run.path / "sub").symlink_to(tmp_path)
    assert store.sub_runs(run) == []


def test_a_number_that_nothing_can_be_makes_an_event_damaged_and_a_long_name_does_not(run):
    log(run, b'{"kind":"Step","index":1,"t_ns":1%s}\n' % (b"0" * 400))
    log(run, b'{"kind":"FunctionSeen","function":"f","name":"%s"}\n' % (b"1" * 400))
    found = reader.Reader(run)
    assert [type(e) for e in found.poll()] == [ev.FunctionSeen] and found.damaged == 1
