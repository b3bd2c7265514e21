"""What is recorded in a process of a job: its main thread while it waits, and programs held for the other ranks."""

import json
import sys
import threading
import time

import pytest

from jaxscope.capture import agreement, shield
from jaxscope.capture.agreement import Agreement
from jaxscope.capture.main_thread import PERIODS, MainThread
from jaxscope.capture.rank import Rank
from jaxscope.log import ranks
from jaxscope.log.store import RunDir

S = 1_000_000_000


class Writer:
    def __init__(self):
        self.written = []
        self.others = 0

    def emit(self, event):
        self.written.append(event)

    @property
    def events(self):
        return len(self.written) + self.others


@pytest.fixture
def looked(monkeypatch):
    """A look at the main thread, which has run or not, at a second; returns the events so far."""
    writer = Writer()
    shield.reset(None)
    watched = MainThread(writer, 30.0)
    monkeypatch.setattr(watched, "_stack", list)
    monkeypatch.setattr(watched, "_read", lambda: watched.counters)
    watched.counters = watched._switches = ("1",)
    watched._ran_ns = watched._changed_ns = S

    def look(second, *, ran=False):
        if ran:
            watched.counters = (str(second),)
        watched._look(second * S)
        return [(e.blocked, e.since_ns // S) for e in writer.written]

    look.writer = writer
    return look


def test_a_main_thread_that_waits_is_recorded_once_with_the_time_and_again_when_it_goes_on(looked):
    assert looked(3, ran=True) == [] and looked(9) == []
    assert looked(13) == [(True, 3)] == looked(40)
    assert looked(42, ran=True) == [(True, 3), (False, 42)]


def test_a_main_thread_that_runs_without_events_is_recorded_once_until_there_is_an_event(looked):
    for second in range(2, 11):
        assert looked(second, ran=True) == []
    assert looked(11, ran=True) == [(False, 1)] == looked(60, ran=True)
    looked.writer.others += 1
    looked(62, ran=True)
    assert looked(80, ran=True) == [(False, 1), (False, 62)]


def test_long_steps_write_fewer_and_fewer_events(looked):
    second = 1
    for _ in range(2_000):
        looked(second + 12)
        second += 13
        looked(second, ran=True)
    assert len(looked.writer.written) <= 2 * PERIODS + 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_line_at_which_the_main_thread_waits_is_that_of_the_program(tmp_path):
    writer, found = Writer(), threading.Event()
    watched = MainThread(writer, 0.05)
    emit = writer.emit
    writer.emit = lambda event: (emit(event), event.blocked and found.set())
    watched.start()
    time.sleep(0.5)
    watched.stop()
    assert found.is_set()
    blocked = next(e for e in writer.written if e.blocked)
    assert blocked.stack[0].function == "test_the_line_at_which_the_main_thread_waits_is_that_of_the_program"


@pytest.fixture
def place(tmp_path):
    """The place of rank 1 in the run of a job of two ranks."""
    return [ranks.join(tmp_path / "j", "j", n, 2, name="train") for n in range(2)][1]


def test_a_program_is_held_until_all_ranks_have_it(place, monkeypatch):
    gave_up, whole = [], ranks.whole_of(place)
    ranks.write_agreed(whole, {"00001": [3]})
    looks = iter([lambda: None, lambda: ranks.write_agreed(whole, {"00001": [3, 7]})])
    monkeypatch.setattr(agreement.time, "sleep", lambda _: next(looks)())
    held = Agreement(place, gave_up.append)
    held.wait(3)
    held.wait(7)
    assert gave_up == [] and next(looks, None) is None


@pytest.mark.parametrize("written", [None, "{", "[1]", '{"00001": [1]}'])
def test_a_program_is_held_for_a_limited_time_and_then_none_any_more(place, monkeypatch, written):
    if written is not None:
        (ranks.whole_of(place).path / ranks.AGREED).write_text(written)
    monkeypatch.setattr(agreement, "HELD_S", 0.05)
    monkeypatch.setattr(agreement, "UNCOMPARED_S", 0.05)
    gave_up = []
    held = Agreement(place, gave_up.append)
    held.wait(7)
    held.wait(8)
    assert len(gave_up) == 1


def test_a_directory_that_vanishes_releases_the_program(place, monkeypatch):
    import shutil

    monkeypatch.setattr(agreement, "UNCOMPARED_S", 0.05)
    gave_up = []
    held = Agreement(place, gave_up.append)
    shutil.rmtree(ranks.whole_of(place).path)
    held.wait(7)
    assert len(gave_up) == 1


def test_ranks_of_one_directory_publish_nothing_and_others_hold_nothing(place, tmp_path):
    lost = []

    def rank(run, count):
        found = Rank(run, Writer(), 1e9, holds=True, degraded=lambda *why: lost.append(why))
        found.begin(1, count)
        found._main_thread.stop()
        return found

    shared, alone = rank(place, 2), rank(RunDir(tmp_path / "other"), 2)
    assert shared._peers is None and shared._agreement is not None
    assert alone._peers is not None and alone._agreement is None
    assert rank(place, 3)._peers is not None, "a rank records somewhere else"
    assert json.dumps(lost) == "[]"
