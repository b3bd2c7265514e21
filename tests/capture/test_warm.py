"""The warm call of a watched function, and the events of a call with effects: the same in C and in Python, and
nothing of the program's stays in them."""

import gc
import importlib
import sys
import threading
import types
import weakref

import pytest

from jaxscope.capture import warm
from jaxscope.schema import events as ev

VARIANTS = [
    pytest.param((warm.PythonTick, warm.PythonCall), id="Python"),
    pytest.param("jaxscope._warm", id="C"),
]


@pytest.fixture(params=VARIANTS)
def kinds(request):
    """(Tick, a class on Call that notes the calls that were due)"""
    if isinstance(request.param, str):
        built = pytest.importorskip(request.param, reason="not built: no C compiler when it was installed")
        tick, base = built.Tick, built.Call
    else:
        tick, base = request.param

    class Watched(base):
        __slots__ = ("__weakref__", "due")

        def _jaxscope_due(self, /, *args, **kwargs):
            self.due.append((self._jaxscope_counter.value, args, kwargs))
            return self._jaxscope_function(*args, **kwargs)

    return tick, Watched


def counter(tick, cells=None, index=0, due=1 << 62):
    made = tick()
    made.value, made.cells, made.index, made.due = 0, [0] if cells is None else cells, index, due
    return made


def watched(kind, function, of=None):
    made = kind()
    made._jaxscope_function, made._jaxscope_counter, made.due = function, of, []
    return made


def add(a, b=2, *, c=3):
    return a, b, c


class Stored:
    def __init__(self):
        self.stored = []

    def __setitem__(self, index, value):
        self.stored.append((index, value))


def test_arguments_and_results_pass_as_they_are(kinds):
    tick, kind = kinds
    for of in (None, counter(tick)):
        call = watched(kind, add, of)
        assert (call(1), call(1, 5), call(1, c=7), call(*[1], **{"b": 8})) == (
            (1, 2, 3),
            (1, 5, 3),
            (1, 2, 7),
            (1, 8, 3),
        )
        with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
            call(1, wrong=2)
    assert of.value == 5 and of.cells == [5]


@pytest.mark.parametrize(
    "cells",
    [memoryview(bytearray(64)).cast("Q"), [0] * 8, memoryview(bytearray(64)), bytearray(8)],
    ids=["mapped", "list", "bytes in a view", "bytes"],
)
def test_the_count_is_stored_at_once_wherever_it_can_be(kinds, cells):
    tick, kind = kinds
    of = counter(tick, cells, index=3)
    call = watched(kind, add, of)
    for n in range(1, 5):
        call(n)
        assert (of.value, cells[3]) == (n, n)
    assert [cells[i] for i in (0, 1, 2, 4)] == [0, 0, 0, 0]


def test_a_call_that_is_due_goes_the_long_way_and_is_counted_once(kinds):
    tick, kind = kinds
    of = counter(tick, due=3)
    call = watched(kind, add, of)
    call(1), call(2)
    assert call.due == []
    call(3, c=4)
    of.due = 5
    call(4), call(5)
    assert call.due == [(3, (3,), {"c": 4}), (5, (5,), {})]
    assert of.value == 5


def test_a_store_may_put_another_place_and_another_counter_there(kinds):
    tick, kind = kinds
    page = memoryview(bytearray(16)).cast("Q")

    class First:
        def __setitem__(self, index, value):
            page[1] = value
            of.cells, of.index = page, 1
            call._jaxscope_counter = None

    of = counter(tick, First())
    call = watched(kind, add, of)
    assert call(1) == (1, 2, 3)
    assert call._jaxscope_counter is None and (page[0], page[1]) == (0, 1)
    call._jaxscope_counter = of
    call(1)
    assert page[1] == 2


def test_what_cannot_be_stored_raises_and_what_is_no_counter_is_refused(kinds):
    tick, kind = kinds
    of = counter(tick, memoryview(bytearray(16)).cast("Q"), index=99)
    with pytest.raises(IndexError):
        watched(kind, add, of)(1)
    if kind.__mro__[1].__module__ == "jaxscope._warm":
        with pytest.raises(TypeError, match="a counter is a Tick or None"):
            watched(kind, add)._jaxscope_counter = 5
        with pytest.raises(TypeError, match="stands for no function yet"):
            kind()()
        with pytest.raises(AttributeError):
            kind()._jaxscope_function
        with pytest.raises(AttributeError):
            tick().cells


def test_exceptions_of_the_function_are_its_own_and_the_call_is_counted(kinds):
    tick, kind = kinds
    of = counter(tick)
    with pytest.raises(ZeroDivisionError):
        watched(kind, lambda: 1 / 0, of)()
    assert of.value == 1


def test_nothing_that_was_passed_stays_alive_and_no_reference_is_lost(kinds):
    tick, kind = kinds
    of = counter(tick, memoryview(bytearray(8)).cast("Q"))

    class Array:
        pass

    call = watched(kind, lambda value, **more: None, of)
    array, key = Array(), "a-keyword-of-its-own"
    seen = weakref.ref(array)
    call(array)
    before = [sys.getrefcount(o) for o in (array, key, call, of, of.cells, call._jaxscope_function, None)][:6]
    for _ in range(1000):
        call(array, **{key: array})
        call._jaxscope_counter = of
        of.cells = of.cells
    assert [sys.getrefcount(o) for o in (array, key, call, of, of.cells, call._jaxscope_function, None)][
        :6
    ] == before
    del array
    assert seen() is None


def test_cycles_through_a_watched_function_are_collected(kinds):
    tick, kind = kinds

    class Holder:
        pass

    def cycle():
        holder = Holder()
        holder.cells = Stored()
        holder.cells.holder = holder
        holder.call = watched(kind, lambda: holder, counter(tick, holder.cells))
        holder.call()
        return weakref.ref(holder), weakref.ref(holder.call)

    refs = cycle()
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_a_page_stays_mapped_while_a_counter_stores_in_it(kinds):
    tick, kind = kinds
    memory = bytearray(8)
    page = memoryview(memory).cast("Q")
    of = counter(tick, page)
    call = watched(kind, add, of)
    del page
    for _ in range(100):
        call(1)
    assert int.from_bytes(memory, sys.byteorder) == 100
    of.cells = [0]
    gc.collect()
    memory.clear()  # nobody looks into it any more


def test_a_function_that_is_replaced_during_its_own_call_lives_to_its_end(kinds):
    tick, kind = kinds

    def replaces():
        call._jaxscope_function = add
        gc.collect()
        return "the old one"

    call = watched(kind, replaces, counter(tick))
    del replaces
    assert call() == "the old one" and call(1) == (1, 2, 3)


def test_calls_from_many_threads_are_all_made(kinds):
    tick, kind = kinds
    done = []
    of = counter(tick, memoryview(bytearray(8)).cast("Q"))
    call = watched(kind, done.append, of)
    threads = [threading.Thread(target=lambda: [call(1) for _ in range(2000)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(done) == 8000 and of.value == of.cells[0]


def test_a_step_of_a_program_counts_the_same_in_python_as_in_c(record):
    program = """
        import jax, jax.numpy as jnp, jaxscope
        from jaxscope.capture import warm
        @jaxscope.watch(step=True)
        @jax.jit
        def step(x): return x + 1
        x = jnp.ones(3)
        for _ in range(40): x = step(x)
        print(warm.IN_C, float(x[0]))
        """
    from jaxscope.model.load import load

    told = {}
    for pure in ("", "1"):
        done = record(program, env={warm.PURE: pure})
        run = load(done.run)
        [step] = [f for f in run.functions.values() if f.watched]
        told[pure] = (step.calls, done.out.split()[1])
    assert told[""] == told["1"] == (40, "41.0")


def test_what_was_built_is_what_is_used():
    assert warm.IN_C is (importlib.util.find_spec("jaxscope._warm") is not None)


def test_what_another_version_of_jaxscope_built_is_not_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxscope._warm", types.SimpleNamespace(Tick=1, Call=2, EventFilter=3))
    assert warm._built() is None
    sys.modules["jaxscope._warm"].VERSION = warm.VERSION
    assert warm._built() == (1, 2, 3)


def test_the_events_of_calls_with_effects_lead_to_the_same_log_in_python_as_in_c(record):
    program = """
        import jax, jax.numpy as jnp, numpy as np
        from jaxscope.capture import session
        received = session.current().probe.received
        passed_on = []
        session.current().probe.received = lambda name, *rest: (passed_on.append(name), received(name, *rest))
        @jax.jit
        def noisy(x, y):
            jax.debug.callback(lambda *v: None, x.sum(), y); return x + y.sum()
        @jax.jit
        def other(x):
            jax.debug.callback(lambda v: None, x); return noisy(x, x)
        devices = jax.devices()
        x = jnp.ones(3)
        for _ in range(5): noisy(x, x)
        for i in range(12):  # the arguments change their kind, their number of items and their device
            noisy(x, np.ones(3, "f4") if i in (6, 7) else x)
            if i % 3 == 0:
                noisy(jax.device_put(x, devices[i % 2]), 1.0)
                other(x)
            jax.device_put(np.ones(50, "f4"), devices[1])
        for i in range(5):
            try: noisy(x, "no array")
            except TypeError: pass
        jax.effects_barrier()
        print(passed_on)
        """
    said = {}
    for pure in ("", "1"):
        done = record(program, env={warm.PURE: pure, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
        counted = {e.function.split("@")[0]: e.count for e in done.of(ev.MissesCounted)}
        copied = {(e.site.line, e.direction, e.via): (e.count, e.bytes) for e in done.of(ev.Transferred)}
        said[pure] = len(done.misses("noisy")), len(done.misses("other")), counted, copied, done.out
    assert said[""] == said["1"]
    assert sum(said[""][2].values()) > 0 and said[""][3]
