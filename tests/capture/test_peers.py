"""Ranks that share no directory, compared through a key-value store: without JAX, with a store of our own."""

import threading

import pytest

from jaxscope import jax_internals
from jaxscope.capture import peers, shield
from jaxscope.capture.peers import Peers

S = 1_000_000_000


class Store:
    """What JAX's client has of the key-value store."""

    def __init__(self):
        self.values = {}
        self.calls = 0
        self.fails = False

    def key_value_set(self, key, value, allow_overwrite=False):
        self._called()
        assert allow_overwrite and len(value) < 2000
        self.values[key] = value

    def key_value_dir_get(self, prefix):
        self._called()
        return [(k, v) for k, v in self.values.items() if k.startswith(prefix)]

    def _called(self):
        self.calls += 1
        if self.fails:
            raise RuntimeError("UNAVAILABLE: the coordinator is gone")


class Writer:
    def __init__(self):
        self.written = []

    def emit(self, event):
        self.written.append(event)


@pytest.fixture
def job(monkeypatch):
    """Four ranks whose threads do not run by themselves."""
    store, writer = Store(), Writer()
    monkeypatch.setattr(jax_internals, "coordination_client", lambda: store)
    monkeypatch.setattr(peers._thread, "start_new_thread", lambda *_: None)
    shield.reset(None)
    ranks = [Peers(writer, n, 4) for n in range(4)]

    def rounds(seconds):
        for rank in (*ranks[1:], ranks[0]):
            assert rank._round(int(seconds * S))
        return [(e.position, [(g.ranks, g.program) for g in e.groups]) for e in writer.written]

    return ranks, store, rounds


def compile_all(ranks, program, but=()):
    for n, rank in enumerate(ranks):
        if n not in but:
            rank.compiled(program, f"{program}@/w/train.py:20")


def test_ranks_that_compile_the_same_write_nothing(job):
    ranks, _, rounds = job
    for n in range(30):
        compile_all(ranks, f"p{n}")
    assert rounds(1) == [] and rounds(100) == []


def test_ranks_that_go_on_after_others_were_killed_are_not_named_as_ahead(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    assert rounds(1) == []
    killed = [ranks.pop(), ranks.pop()]
    compile_all(ranks, "b")
    assert [rounds(n) for n in range(2, 40)] == [[]] * 38
    ranks += killed  # they were not killed, but stopped for a while
    assert rounds(41) == [(1, [([0, 1], "b"), ([2, 3], None)])]


def test_a_rank_that_leaves_because_another_was_killed_is_not_named(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    assert rounds(1) == []
    ranks.pop()  # killed
    ranks[2]._leaving = True
    assert [rounds(n) for n in range(2, 40)] == [[]] * 38


def test_the_position_at_which_a_rank_compiled_something_else_is_recorded_once(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    compile_all(ranks, "b", but=[2])
    ranks[2].compiled("c", "c@/w/train.py:30")
    once = [(1, [([0, 1, 3], "b"), ([2], "c")])]
    assert rounds(1) == once and rounds(20) == once


def test_a_rank_that_is_ahead_for_some_seconds_is_recorded_and_one_that_is_late_is_not(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    compile_all(ranks, "b", but=[1])
    assert rounds(1) == [] and rounds(60) == [], "rank 1 is late"
    compile_all(ranks, "b", but=[0, 2, 3])
    ranks[3].compiled("c", "c@/w/train.py:30")
    assert rounds(61) == []
    assert rounds(66) == [(2, [([0, 1, 2], None), ([3], "c")])]


def test_a_program_that_rank_0_does_not_come_to_is_recorded_when_it_leaves(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    ranks[3].compiled("c", "c@/w/train.py:30")
    assert rounds(1) == []
    ranks[0]._leaving = True
    assert rounds(2) == [(1, [([0, 1, 2], None), ([3], "c")])]


def test_a_program_that_others_have_not_published_yet_is_no_difference_when_rank_0_leaves(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    assert rounds(1) == []
    ranks[0].compiled("b", "b@/w/train.py:30")
    ranks[0]._leaving = True
    assert rounds(2) == []


def test_a_rank_that_leaves_while_most_go_on_is_recorded(job):
    ranks, _, rounds = job
    compile_all(ranks, "a")
    rounds(1)
    ranks[2]._leaving = True
    assert rounds(2) == []
    assert rounds(7) == [(1, [([0, 1, 2, 3], None)])]


def test_more_programs_than_a_value_holds_lose_no_later_difference(job):
    ranks, _, rounds = job
    for n in range(20):
        compile_all(ranks, f"p{n}")
    assert rounds(1) == []
    compile_all(ranks, "b", but=[2])
    ranks[2].compiled("c", "c@/w/train.py:30")
    assert rounds(2) == [(20, [([0, 1, 3], "b"), ([2], "c")])]


def test_the_first_call_that_fails_is_the_last_one(job, monkeypatch):
    _, store, _ = job
    store.fails = True
    writer = Writer()
    rank = Peers(writer, 0, 4)
    rank.compiled("a", "a@/w/train.py:20")
    monkeypatch.setattr(peers, "ROUND_S", 0.001)
    rank._run()
    assert store.calls == 1 and writer.written == []


def test_nothing_is_called_before_the_first_program_for_all_processes(job):
    _, store, _ = job
    rank = Peers(Writer(), 0, 4)
    rank.stop()
    assert store.calls == 0


def test_the_end_of_the_program_waits_a_limited_time_for_a_call_that_goes_on(monkeypatch):
    class Slow(Store):
        def _called(self):
            entered.set()
            release.wait(10)

    entered, release = threading.Event(), threading.Event()
    slow = Slow()
    monkeypatch.setattr(jax_internals, "coordination_client", lambda: slow)
    monkeypatch.setattr(peers, "LEAVE_S", 0.05)
    rank = Peers(Writer(), 1, 4)
    rank.compiled("a", "a@/w/train.py:20")
    assert entered.wait(10)
    rank.stop()
    release.set()
