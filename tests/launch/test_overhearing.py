"""XLA's messages on stderr are read by the process that passes them on, and reach stderr unchanged."""

import time

import pytest
from launching import until

from jaxscope.launch import xla_warnings
from jaxscope.log import store
from jaxscope.log.reader import read
from jaxscope.schema.events import CompilerWarned, StderrWatched

TEXT = "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {a} to {b}"
SAY = f"""
import os, threading, time
stamp = time.strftime("W%m%d %H:%M:%S.") + "000001 %7d spmd_partitioner.cc:656] " % threading.get_native_id()
os.write(2, b"before\\n" + stamp.encode() + {TEXT.encode()!r}[:20])
time.sleep(0.2)
os.write(2, {TEXT.encode()!r}[20:] + b"\\nafter\\n")
time.sleep(0.2)
"""


def said(run):
    return [e for e in read(run) if isinstance(e, CompilerWarned)]


@pytest.fixture
def listening(tmp_path):
    run = store.create(tmp_path / "run")
    return run, xla_warnings.Listener(run, {})


def stamped(at=None, tid=1, text=TEXT):
    moment = time.localtime(time.time() if at is None else at)
    return (
        f"{time.strftime('W%m%d %H:%M:%S', moment)}.250000 {tid:7} spmd_partitioner.cc:656] {text}".encode()
    )


def test_with_tee_stderr_it_is_in_the_log_and_on_stderr(place):
    ours = place.run("-q", "--tee-stderr", place.program("a.py", SAY))
    assert TEXT in ours.stderr
    (event,) = said(place.latest)
    assert event.text.endswith(f"spmd_partitioner.cc:656] {TEXT}")
    (ended,) = place.events("ProgramExited")
    assert event.program_pid in (ended.program_pid, None)
    assert 0 <= ended.t_ns - event.t_ns < 5e9


def test_a_detached_program_is_read_by_its_keeper(place):
    place.run("-q", "--detach", place.program("a.py", SAY))
    until(lambda: place.events("ProgramExited"))
    assert len(said(place.latest)) == 1
    assert len(place.events("StderrWatched")) == 1


def test_without_either_nobody_says_that_stderr_was_watched(place):
    place.run("-q", place.program("a.py", SAY))
    assert not place.events("StderrWatched")


def test_a_setting_that_keeps_xla_silent_is_noted(place):
    place.run("-q", "--tee-stderr", place.program("a.py", "1"), env={"TF_CPP_MIN_LOG_LEVEL": "3"})
    (event,) = place.events("StderrWatched")
    assert event.muted == "TF_CPP_MIN_LOG_LEVEL=3"


@pytest.mark.parametrize("piece", [1, 7, 64, 100_000])
def test_a_line_may_arrive_in_any_pieces(listening, piece):
    run, listener = listening
    data = b"x" * 500 + b"\n" + stamped() + b"\n" + b"epoch 1: " + stamped() + b"\nmore"
    for at in range(0, len(data), piece):
        listener.search(data[at : at + piece])
    assert [e.text[-len(TEXT) :] for e in said(run)] == [TEXT, TEXT]
    assert all(e.text.startswith("W") for e in said(run))


def test_its_time_is_the_one_it_was_printed_at(listening):
    run, listener = listening
    listener.search(stamped(time.time() - 20) + b"\n")
    (event,) = said(run)
    assert 19e9 < time.time_ns() - event.t_ns < 25e9


def test_a_stamp_of_another_clock_counts_as_read_now(listening):
    run, listener = listening
    listener.search(stamped(time.time() - 7200) + b"\n")
    assert time.time_ns() - said(run)[0].t_ns < 5e9


def test_words_without_the_compilers_own_stamp_are_the_programs(listening):
    run, listener = listening
    listener.search(f"I read about {TEXT}\n".encode())
    assert said(run) == []


def test_lines_without_end_are_not_kept_and_what_follows_is_read(listening):
    run, listener = listening
    for _ in range(40):
        listener.search(b"y" * 65536)
    assert len(listener._rest) <= xla_warnings.MAX_LINE
    listener.search(b"\n" + stamped() + b"\n")
    assert len(said(run)) == 1


def test_a_flood_of_warnings_is_cut(listening, monkeypatch):
    monkeypatch.setattr(xla_warnings, "MAX_WARNINGS", 3)
    run, listener = listening
    listener.search((stamped() + b"\n") * 10)
    assert len(said(run)) == 3


def test_a_run_directory_that_is_gone_stops_the_listening_and_nothing_else(tmp_path):
    listener = xla_warnings.Listener(store.RunDir(tmp_path / "nowhere"), {})
    listener.search(stamped() + b"\n")
    assert not (tmp_path / "nowhere").exists()


def test_the_listener_says_that_it_listens(listening):
    run, _ = listening
    assert [type(e) for e in read(run)] == [StderrWatched]
