"""Python's garbage collector runs between keys, and has its old settings when the interface has ended."""

from __future__ import annotations

import gc
import weakref

import pytest

from jaxscope.tui import gc_pauses


class Ring:
    def __init__(self):
        self.me = self


@pytest.fixture
def collector():
    gc.freeze()  # of the million objects of all tests, none counts as new and none is looked at
    made = gc_pauses.Collector()
    yield made
    made.stop()


def rings(n):
    """Garbage; the last of it, to see when it goes."""
    for _ in range(n):
        last = Ring()
    return weakref.ref(last)


def test_garbage_goes_when_no_key_has_come_for_a_while(collector):
    gone = rings(gc_pauses.MANY)
    assert not collector.tick(now=10.0, key_at=9.5)
    assert gone() is not None, "somebody types"
    assert collector.tick(now=10.0, key_at=8.0)
    assert gone() is None


def test_who_never_stops_typing_waits_for_no_look_at_garbage(collector, monkeypatch):
    monkeypatch.setattr(gc_pauses, "TOO_MANY", 20_000)
    before = gc.get_freeze_count()
    gone = rings(20_001)
    assert not collector.tick(now=10.0, key_at=10.0)
    assert gone() is not None
    assert gc.get_freeze_count() > before + 20_000, "it is out of sight"


def test_little_garbage_is_left_alone(collector):
    assert not collector.tick(now=10.0, key_at=0.0)


def test_the_collector_is_as_it_was_afterwards():
    assert gc.isenabled()
    made = gc_pauses.Collector()
    made.loaded()
    assert not gc.isenabled() and gc.get_freeze_count()
    made.stop()
    assert gc.isenabled() and not gc.get_freeze_count()
