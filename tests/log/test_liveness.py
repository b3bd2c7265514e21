"""Whether the process that writes a run is alive: by its lock on this machine, else by its heartbeat."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from jaxscope.log import liveness, store
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.writer import Writer
from jaxscope.model.load import going_on, load, state
from jaxscope.schema import events as ev


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run", how="record")


RECORDS = """
import os, signal, sys
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
writer = Writer(RunDir(sys.argv[1]), lambda forked: ev.RunStarted(t_ns=1, how="record"), of_program=True)
writer.open()
child = os.fork() if sys.argv[2:] else None
if child == 0:
    writer.forked()
else:
    print(child or "ready", flush=True)
signal.pause()
"""


def recording(run, *words):
    """A process that records and then waits for its end, and what it prints."""
    program = subprocess.Popen(
        [sys.executable, "-c", RECORDS, str(run.path), *words], stdout=subprocess.PIPE, text=True
    )
    return program, program.stdout.readline().strip()


def kill(program):
    program.kill()
    program.wait()
    program.stdout.close()


@pytest.mark.subprocess
def test_a_program_that_says_nothing_for_hours_goes_on_until_the_moment_it_is_killed(run):
    program, _ = recording(run)
    assert (state(load(run), run), going_on(load(run), run)) == ("running", True)
    program.send_signal(signal.SIGSTOP)  # Ctrl-Z
    assert going_on(load(run), run)
    kill(program)
    assert (state(load(run), run), going_on(load(run), run)) == ("lost", False)


@pytest.mark.subprocess
def test_a_copy_of_a_run_does_not_go_on(run, tmp_path):
    program, _ = recording(run)
    heartbeat = Heartbeat(run.heartbeat)
    heartbeat.beat()
    shutil.copytree(run.path, tmp_path / "copy")
    copy = store.RunDir(tmp_path / "copy")
    assert state(load(run), run) == "running"
    assert (state(load(copy), copy), going_on(load(copy), copy)) == ("lost", False)
    heartbeat.close()
    kill(program)
    assert state(load(run), run) == "lost"


@pytest.mark.subprocess
def test_a_forked_child_does_not_keep_the_lock_of_its_parent(run):
    program, child = recording(run, "fork")
    try:
        (log,) = run.logs()
        assert liveness.locked(log)
        time.sleep(0.1)  # in which the child closes its copy
        program.kill()
        program.wait()
        assert liveness.locked(log) is False
    finally:
        os.kill(int(child), signal.SIGKILL)
        program.stdout.close()


def elsewhere(path, **said):
    path.write_text(json.dumps({"machine": "another", "locked": True, "at": time.time(), **said}))


def test_of_another_machine_only_a_recent_heartbeat_says_that_a_program_goes_on(run):
    for at, known in ((time.time(), True), (time.time() - 60, None), (time.time() + 1e8, None)):
        elsewhere(run.heartbeat, at=at)
        assert going_on(load(run), run) is known
        assert state(load(run), run) == ("running" if known else "lost")
    elsewhere(run.heartbeat, machine=liveness.machine())
    assert (going_on(load(run), run), state(load(run), run)) == (False, "lost")


def test_an_empty_heartbeat_of_an_older_version_counts_by_its_time(run):
    run.heartbeat.touch()
    assert state(load(run), run) == "running"
    os.utime(run.heartbeat, (1, 1))
    assert state(load(run), run) == "lost"


@pytest.mark.parametrize("text", ["[]", "{", '{"machine": 1}', "\0" * 300, '{"at": 1e999}', "[" * 250])
def test_a_damaged_heartbeat_counts_by_its_time(run, text):
    run.heartbeat.write_text(text)
    assert liveness.beat_of(run.heartbeat).going is None


def test_where_there_are_no_locks_the_latest_event_and_the_heartbeat_say_it(run, monkeypatch):
    def none(fd, how):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", none)
    writer = Writer(run, lambda forked: ev.RunStarted(), of_program=True)
    writer.open()
    assert (going_on(load(run), run), state(load(run), run)) == (True, "running")
    (started,) = [p.started for p in load(run).processes.values()]
    assert not started.locked and started.machine == liveness.machine()
    monkeypatch.setattr(liveness, "STALE_S", 0.0)
    assert (going_on(load(run), run), state(load(run), run)) == (None, "lost")
    writer.close()


def test_a_heartbeat_is_neither_written_nor_read_through_a_link_or_a_pipe(run, tmp_path):
    (tmp_path / "precious").write_text("precious")
    run.heartbeat.symlink_to(tmp_path / "precious")
    Heartbeat(run.heartbeat).beat()
    assert (tmp_path / "precious").read_text() == "precious" and liveness.beat_of(run.heartbeat) is None
    run.heartbeat.unlink()
    os.mkfifo(run.heartbeat)
    Heartbeat(run.heartbeat).beat()
    assert liveness.beat_of(run.heartbeat) is None
