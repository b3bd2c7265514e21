"""When live arrays are looked at: by steps, by growth, and never for more than there is to spend."""

import gc
import threading
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.capture.live_arrays import look as live_arrays
from jaxscope.capture.sampler import FIXED_S, SHARE, Budget, Sampler
from jaxscope.schema.arrays import ArrayGroup
from jaxscope.schema.events import ArraysSeen


@dataclass
class World:
    """A clock that only moves when something takes time, and so many live arrays."""

    now: float = 0.0
    count: int = 100
    per_array: float = 5e-6
    per_glance: float = 1e-8
    step: int | None = 1
    seen: list = field(default_factory=list)
    groups: list = field(default_factory=list)
    suspected: list = field(default_factory=list)

    def sampler(self):
        return Sampler(self.seen.append, lambda: self.step, lambda: Look(self), lambda: self.now)

    def train(self, sampler, steps, seconds, first=1):
        for k in range(first, first + steps):
            self.now += seconds
            self.step = k + 1
            sampler.step_ended(k)


class Look:
    def __init__(self, world):
        self.world, self.count = world, world.count
        self.began = world.now
        world.now += world.per_glance * world.count

    @property
    def seconds(self):
        return self.world.now - self.began

    def take(self, frame, why, step, trace=None, suspects=(), **more):
        self.world.suspected.append(set(suspects))
        self.world.now += self.world.per_array * self.count
        return ArraysSeen(why=why, step=step, count=self.count, groups=self.world.groups, **more)


def steps(world, why="step"):
    return [e.step for e in world.seen if e.why == why]


def test_the_first_steps_then_steps_twice_as_far_are_looked_at():
    world = World()
    world.train(world.sampler(), 300, seconds=1.0)
    assert steps(world) == [1, 2, 3, 4, 8, 16, 32, 64, 128, 256]


def test_growth_between_them_is_looked_at():
    world = World()
    sampler = world.sampler()
    world.train(sampler, 20, 1.0)
    world.count = 200
    world.train(sampler, 5, 1.0, first=21)
    assert steps(world, "growth") == [21]


def test_a_short_program_on_a_busy_machine_is_looked_at_once():
    world = World(per_glance=1e-4)  # 10 ms to count the arrays
    world.train(world.sampler(), 6, seconds=0.1)
    assert steps(world) == [1]


def test_a_look_that_cannot_be_paid_waits_until_it_can():
    world = World(count=10_000)  # 50 ms a look
    world.train(world.sampler(), 200, seconds=0.5)
    assert steps(world)[0] > 1 and sum(e.count for e in world.seen) > 0


@given(
    st.integers(0, 50_000),
    st.floats(1e-4, 10),
    st.integers(1, 400),
    st.floats(1e-7, 1e-4),
    st.floats(1e-9, 1e-6),
)
def test_whatever_the_program_is_looks_cost_at_most_their_share(count, seconds, n, per_array, per_glance):
    """The first look is taken on trust: until one has been measured, its price is only supposed."""
    world = World(count=count, per_array=per_array, per_glance=per_glance)
    sampler = world.sampler()
    world.train(sampler, n, seconds)
    allowance = SHARE * world.now + per_array * count + 2 * per_glance * count + FIXED_S
    assert sampler.budget.spent <= allowance
    later = [e for e in world.seen[1:] if e.why in ("step", "growth")]
    world.train(sampler, n, seconds, first=n + 1)
    if later:
        assert sampler.budget.spent <= SHARE * world.now * 1.02 + FIXED_S + 2 * per_glance * count


def test_a_thousand_fast_steps_cost_a_handful_of_looks_and_the_rest_is_one_comparison():
    world = World(count=10_000)
    made = []
    sampler = Sampler(
        world.seen.append, lambda: world.step, lambda: made.append(1) or Look(world), lambda: world.now
    )
    world.train(sampler, 1000, seconds=0.001)  # 1 s: 10 ms to spend, a look is 50 ms
    assert world.seen == [] and len(made) <= 30


@pytest.mark.parametrize(("at", "why"), [("at_miss", "miss"), ("at_transfer", "time")])
def test_without_steps_misses_and_transfers_are_looked_at_ever_more_rarely(at, why):
    world = World(step=None)
    sampler = world.sampler()
    for _ in range(200):
        world.now += 1.0
        getattr(sampler, at)(None)
    assert {e.why for e in world.seen} == {why} and 9 <= len(world.seen) <= 14
    world.step = 3
    before = len(world.seen)
    sampler.at_miss(None)
    assert len(world.seen) == before


def test_without_events_the_next_look_is_due_when_there_is_time_for_it():
    world = World(step=None)
    sampler = world.sampler()
    for world.now in (2.0, 2.1, 3.2):
        wait = sampler.at_sample(None)
    assert [e.why for e in world.seen] == ["time", "time"] and 1.5 < wait < 1.7
    world.step = 1
    assert sampler.at_sample(None) == 10.0 and len(world.seen) == 2


def test_what_is_requested_is_always_looked_at_and_paid_for_later():
    world = World(count=10_000)
    sampler = world.sampler()
    world.now, world.step = 0.5, 6
    sampler.now(None)
    assert [(e.why, e.step) for e in world.seen] == [("asked", 5)]
    world.train(sampler, 40, 0.1, first=7)  # 4.5 s: 45 ms; 50 ms are spent
    assert len(world.seen) == 1
    sampler.ended(None, leaving=False)
    assert world.seen[-1].why == "exit"


def test_memory_that_ran_out_is_reported_whatever_was_raised_from_it():
    class JaxRuntimeError(Exception):
        __module__ = "jax.errors"

    world = World()
    sampler = world.sampler()
    try:
        try:
            raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")
        except JaxRuntimeError as e:
            raise ValueError("training failed") from e
    except ValueError:
        sampler.ended(None, leaving=False)
    assert world.seen[-1].why == "exhausted" and "8 bytes" in world.seen[-1].error
    try:
        raise ValueError("RESOURCE_EXHAUSTED: said by the user's own code")
    except ValueError:
        sampler.ended(None, leaving=False)
    assert world.seen[-1].why == "exit"


def test_unnamed_arrays_that_are_more_at_three_looks_are_suspects_once():
    world = World()
    sampler = world.sampler()
    for n in range(1, 9):
        lost = ArrayGroup(None, n, (3,), "float32")
        named = ArrayGroup("history[*]", n, (3,), "float32")
        still = ArrayGroup(None, 2, (9,), "float32")
        world.groups = [lost, named, still]
        sampler.now(None)
    assert world.suspected == [set()] * 4 + [{((3,), "float32", None)}] + [set()] * 3


def test_a_first_look_that_was_slow_says_nothing_of_what_many_arrays_cost():
    # Nine arrays that took 6 ms, because a program's modules were gone through for the first time.
    budget = Budget(lambda: 0.0)
    budget.taken(0.006, 9)
    assert budget.expected(300) < 0.02
    budget.taken(0.016, 1000)
    assert 0.006 < budget.expected(1000) < 0.03


def test_a_garbage_collection_in_a_look_is_not_charged(monkeypatch):
    objects = [[n] for n in range(200_000)]
    began, before = time.perf_counter(), list(gc.callbacks)
    look = live_arrays.Look()
    monkeypatch.setattr(look, "_take", lambda *a, **more: gc.collect())
    look.take(None, "step", 1)
    assert look.seconds < 0.5 * (time.perf_counter() - began) and gc.callbacks == before and objects


def test_time_in_which_other_programs_use_the_cores_is_not_charged(monkeypatch):
    look = live_arrays.Look()
    monkeypatch.setattr(look, "_take", lambda *a, **more: time.sleep(0.2))  # as if the thread had to wait
    look.take(None, "step", 1)
    assert look.seconds < 0.1


def test_a_collection_that_another_thread_makes_is_not_subtracted(monkeypatch):
    objects = [[n] for n in range(200_000)]
    look = live_arrays.Look()

    def collect_elsewhere(*_, **more):
        other = threading.Thread(target=gc.collect)
        other.start()
        other.join()

    monkeypatch.setattr(look, "_take", collect_elsewhere)
    look.take(None, "step", 1)
    assert look.seconds >= 0 and objects
