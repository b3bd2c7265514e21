"""A disk that takes no more: the recording says itself where it ended, and why."""

import json
import os
import resource

import pytest

from jaxscope.log import store
from jaxscope.log.reader import Reader
from jaxscope.log.writer import Writer
from jaxscope.model.load import load
from jaxscope.schema import events as ev


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def opened(run):
    writer = Writer(run, lambda forked: ev.RunStarted(how="run"), of_program=True)
    writer.open()
    return writer


def at_most(bytes, action):
    """Do it where no file may be larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, hard))
    try:
        action()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def stopped(run):
    (p,) = load(run).processes.values()
    return p.stopped.reason if p.stopped is not None else None


def test_a_log_that_takes_no_more_keeps_whole_lines_and_ends_in_the_room_kept_for_that(run, capsys):
    writer = opened(run)
    size = writer._bytes + 40

    def more():
        for n in range(5):
            writer.emit(ev.Missed(call=n, function="f" * 200))

    at_most(size, more)
    assert capsys.readouterr().err.count("recording stopped: ") == 1
    (log,) = run.logs()
    assert log.read_bytes().endswith(b"\n") and all(map(json.loads, log.read_text().splitlines()))
    reader = Reader(run)
    kinds = [type(e).__name__ for e in reader.poll()]
    assert kinds == ["RunStarted", "RecordingStopped"] and not reader.damaged and not reader.poll()
    assert stopped(run) == "File too large"
    writer.close()
    assert stopped(run) == "File too large" and not load(run).complete


def test_a_text_that_has_no_room_ends_the_recording_in_the_log(run, monkeypatch, capsys):
    writer = opened(run)

    def full(text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run, "put_text", full)
    assert writer.put_text("module") is None
    writer.emit(ev.RunEnded())
    writer.close()
    assert stopped(run) == "No space left on device" and not load(run).complete
    assert [lost.seam for lost in load(run).degraded] == ["log"]


def test_a_limit_of_our_own_ends_it_too(run, monkeypatch, capsys):
    monkeypatch.setattr("jaxscope.log.writer.MAX_LOG_BYTES", 500)
    writer = opened(run)
    for n in range(9):
        writer.emit(ev.Missed(call=n))
    assert "exceeded" in stopped(run)


def test_an_orderly_end_leaves_no_room_behind(run):
    writer = opened(run)
    assert len(list(run.events.glob("*.stopped"))) == 1 and stopped(run) is None
    writer.emit(ev.RunEnded())
    writer.close()
    assert not list(run.events.glob("*.stopped")) and load(run).complete


def test_where_not_even_room_could_be_made_the_log_has_no_end(run, monkeypatch, capsys):
    monkeypatch.setattr(
        "jaxscope.log.files.write", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "full"))
    )
    writer = opened(run)
    at_most(writer._bytes, lambda: writer.emit(ev.Missed(call=1)))
    writer.close()
    assert stopped(run) is None and not load(run).complete


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff" * 512, b"\0" * 512, b"x" * 2000])
def test_what_is_no_event_in_that_room_is_passed_over(run, content):
    writer = opened(run)
    (room,) = run.events.glob("*.stopped")
    room.write_bytes(content)
    assert [type(e).__name__ for e in Reader(run).poll()] == ["RunStarted"]
    writer.close()


def test_an_event_behind_the_end_takes_it_back(run):
    """A program that runs its exit handlers early goes on."""
    writer = opened(run)
    writer.emit(ev.RunEnded())
    assert load(run).complete
    writer.emit(ev.Missed(call=1))
    assert not load(run).complete
    writer.emit(ev.RunEnded())
    assert load(run).complete and os.getpid()
    writer.close()
