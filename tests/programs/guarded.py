"""Scenarios for no_recompiles; prints what became of each as JSON. A scenario takes a list for its own notes."""

import asyncio
import io
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope
from jaxscope.capture import announce

SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


def x(n):
    return np.ones(n, "float32")


@jaxscope.watch
@jax.jit
def step(x):
    return x * 2


@jax.jit
def plain(x):
    return x + 1


@scenario
def late_shape(notes):
    done = 0
    try:
        with jaxscope.no_recompiles(after=1):
            for n in (3, 3, 4, 3, 3):
                step(x(n))
                done += 1
    except jaxscope.RecompileError as e:
        notes += [done, e.findings[0].code, e.findings[0].severity, e.findings[0].source.file == __file__]
        raise


@scenario
def clean(notes):
    with jaxscope.no_recompiles(after=1):
        for n in (3, 3, 3):
            step(x(n))


@scenario
def allowed(notes):
    with jaxscope.no_recompiles(after=2):
        for n in (5, 6, 5):
            step(x(n))


@scenario
def marks(notes):
    done = 0
    try:
        with jaxscope.no_recompiles(after=1):
            for n in (7, 8, 7, 7):
                done += 1
                plain(x(n))
                jaxscope.step()
    finally:
        notes.append(done)


@scenario
def no_steps(notes):
    with jaxscope.no_recompiles(after=1):
        plain(x(11))


@scenario
def after_0(notes):
    plain(x(12))
    with jaxscope.no_recompiles(after=0):
        plain(x(13))


@scenario
def after_0_warm(notes):
    with jaxscope.no_recompiles(after=0):
        plain(x(13))


@scenario
def noise(notes):
    @jax.jit
    def talks(x):
        jax.debug.callback(lambda v: None, x.sum())
        return jax.pure_callback(lambda v: np.asarray(v) * 2, x, x)

    array = jax.device_put(x(3))
    talks(array), step(array)
    with jaxscope.no_recompiles(after=0):
        for value in (array, x(3), array, x(3)):
            step(value)
            talks(value)
        jax.effects_barrier()


def in_step_3(first, third):
    with jaxscope.no_recompiles(after=2):
        for call in (first, first, third, first):
            call()
            jaxscope.step()


@scenario
def committed(notes):
    loose, held = jnp.arange(3.0), jax.device_put(jnp.arange(3.0), jax.devices()[0])
    f = jax.jit(lambda x: x - 1)
    in_step_3(lambda: f(loose), lambda: f(held))


@scenario
def device(notes):
    a, b = (jax.device_put(x(3), d) for d in jax.devices())
    f = jax.jit(lambda x: x - 2)
    in_step_3(lambda: f(a), lambda: f(b))


@scenario
def static(notes):
    f = jax.jit(lambda x, n: x - n, static_argnums=1)
    in_step_3(lambda: f(x(3), 1), lambda: f(x(3), 2))


def fresh():
    return jax.jit(lambda x: x * 5)


@scenario
def lambda_(notes):
    f, g = fresh(), fresh()
    in_step_3(lambda: f(x(3)), lambda: g(x(3)))


@scenario
def x64(notes):
    f = jax.jit(lambda x: x * 6)

    def wide():
        jax.config.update("jax_enable_x64", True)
        try:
            f(x(3))
        finally:
            jax.config.update("jax_enable_x64", False)

    in_step_3(lambda: f(x(3)), wide)


@scenario
def eager(notes):
    with jaxscope.no_recompiles(after=0):
        jnp.cumsum(jnp.ones(97))


@scenario
def other_function(notes):
    with jaxscope.no_recompiles(after=0, functions=["step", "ste*"]):
        plain(x(14))


@scenario
def misspelled(notes):
    with jaxscope.no_recompiles(after=0, functions="tarin_*"):
        pass


@scenario
def spelled_and_warm(notes):
    with jaxscope.no_recompiles(after=0, functions="never_called"):
        pass


def never_called(x):
    return x


@scenario
def named_by_object(notes):
    with jaxscope.no_recompiles(after=0, functions=plain):
        plain(x(15))


@scenario
def own_exception(notes):
    with jaxscope.no_recompiles(after=0):
        plain(x(16))
        raise KeyError("mine")


@scenario
def swallowed(notes):
    with jaxscope.no_recompiles(after=1):
        for n in (3, 16, 3, 3, 3):
            try:
                step(x(n))
            except jaxscope.RecompileError:
                notes.append("once")


@scenario
def decorator(notes):
    @jaxscope.no_recompiles(after=1)
    def epoch(sizes):
        for n in sizes:
            step(x(n))
        return "fine"

    notes.append(epoch([17, 17]))
    notes.append(epoch([18, 18]))
    epoch([17, 19])


@scenario
def bare_decorator(notes):
    @jaxscope.no_recompiles
    def epoch(n):
        "Trains."
        return float(jax.device_get(step(x(n))).sum())

    if (epoch.__name__, epoch.__doc__) == ("epoch", "Trains."):
        notes.append("__name__ and doc are kept")
    notes.append(epoch(3))


@scenario
def method(notes):
    class Trainer:
        @jaxscope.no_recompiles(after=0)
        def fit(self, n):
            return plain(x(n))

    Trainer().fit(13)
    Trainer().fit(44)


@scenario
def async_function(notes):
    @jaxscope.no_recompiles(after=0)
    async def task(n):
        await asyncio.sleep(0.01)
        found = float(np.sum(jax.device_get(plain(x(n)))))
        await asyncio.sleep(0.01)
        return found

    async def main():
        results = await asyncio.gather(task(13), task(45), task(13), return_exceptions=True)
        notes.extend(type(r).__name__ for r in results)

    asyncio.run(main())


@scenario
def another_task(notes):
    async def guarded():
        with jaxscope.no_recompiles(after=0):
            await asyncio.sleep(0.05)

    async def free():
        await asyncio.sleep(0.01)
        plain(x(46))
        jaxscope.step()
        notes.append("went on")

    async def main():
        await asyncio.gather(guarded(), free())

    asyncio.run(main())


@scenario
def generator(notes):
    @jaxscope.no_recompiles(after=0)
    def batches():
        got = yield float(jax.device_get(step(x(3)))[0])
        yield float(jax.device_get(step(x(3)))[0])
        yield got
        return "done"

    iterator = batches()
    found = [next(iterator)]
    plain(x(46))
    found.append(iterator.send("sent"))
    plain(x(47))
    found.append(next(iterator))
    try:
        next(iterator)
    except StopIteration as e:
        found.append(e.value)
    notes.append(found)


@scenario
def generator_compiles(notes):
    @jaxscope.no_recompiles(after=0)
    def batches():
        yield plain(x(48))

    list(batches())


@scenario
def async_generator(notes):
    @jaxscope.no_recompiles(after=0)
    async def batches(n):
        for _ in range(2):
            await asyncio.sleep(0)
            yield float(jax.device_get(plain(x(n)))[0])

    async def main():
        async for _ in batches(13):
            plain(x(49))
        try:
            async for _ in batches(50):
                pass
        except jaxscope.RecompileError as e:
            notes.append(type(e).__name__)

    asyncio.run(main())


@scenario
def nested(notes):
    with jaxscope.no_recompiles(after=0, functions="step"):
        try:
            with jaxscope.no_recompiles(after=0):
                plain(x(20))
        except jaxscope.RecompileError:
            notes.append("inner raised")
        step(x(3))


@scenario
def in_a_recording(notes):
    with jaxscope.record(Path(tempfile.gettempdir(), "mine")) as run:
        plain(x(21))
        try:
            with jaxscope.no_recompiles(after=0):
                plain(x(22))
        finally:
            if announce.current is not None:
                notes.append("still recording")
            found = run.read().compilations.values()
            notes.append(
                len(
                    [
                        c
                        for c in found
                        if c.function.name == "plain" and c.key.arguments[0].shape[0] in (21, 22)
                    ]
                )
            )


@scenario
def marks_as_before(notes):
    with jaxscope.record(Path(tempfile.gettempdir(), "marked")):
        jaxscope.step()
        with jaxscope.no_recompiles(after=1):
            for _ in range(3):
                for n in (61, 62, 63):  # several calls of a watched function in one step
                    step(x(n))
                jaxscope.step()
        notes.append("passed")
        with jaxscope.no_recompiles(after=1):
            for n in (64, 65, 66):
                step(x(n))
                notes.append(n)
                jaxscope.step()


@scenario
def recording_ended(notes):
    run = jaxscope.record(Path(tempfile.gettempdir(), "ended")).start()
    with jaxscope.no_recompiles(after=0):
        run.stop()
        plain(x(67))


@scenario
def recording_inside(notes):
    stderr, sys.stderr = sys.stderr, io.StringIO()
    try:
        with jaxscope.no_recompiles(after=0), jaxscope.record(Path(tempfile.gettempdir(), "inside")):
            plain(x(13))
        notes.append(sys.stderr.getvalue())
    finally:
        sys.stderr = stderr


@scenario
def second_block(notes):
    with jaxscope.no_recompiles(after=1):
        for n in (3, 3, 3):
            step(x(n))
    with jaxscope.no_recompiles(after=1):
        for n in (23, 24, 23):
            step(x(n))


@scenario
def in_a_callback(notes):
    def called_back(value):
        step(x(3))  # the next call of the watched function, with JAX above it
        notes.append("the callback ran to its end")
        return np.asarray(value)

    calls = jax.jit(lambda v: jax.pure_callback(called_back, v, v))
    calls(x(3)).block_until_ready()
    notes.clear()
    with jaxscope.no_recompiles(after=1):
        step(x(3)), step(x(25))
        calls(x(3)).block_until_ready()


@scenario
def thread(notes):
    def work():
        for n in (3, 26, 3):
            step(x(n))
        notes.append("thread ended well")

    with jaxscope.no_recompiles(after=1):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()


@scenario
def closed_in_another_thread(notes):
    import contextlib

    ended = []

    def close(stack):
        try:
            stack.close()
        except Exception as e:
            ended.append(f"{type(e).__name__}: {e}")

    for sizes in ((3, 3), (3, 27)):
        stack = contextlib.ExitStack()
        stack.enter_context(jaxscope.no_recompiles(after=1))
        for n in sizes:
            step(x(n))
        worker = threading.Thread(target=close, args=(stack,))
        worker.start()
        worker.join()
        notes.append(ended.pop() if ended else "passed")


@scenario
def warm_calls(notes):
    array = jax.device_put(x(3))
    plain(array), step(array)
    with jaxscope.no_recompiles(after=1):
        plain(array), step(array)
        probe = announce.current.probe
        before = probe.callbacks
        for _ in range(100):
            plain(array), step(array)
        notes.append(probe.callbacks - before)


@scenario
def forked(notes):
    import warnings

    warnings.simplefilter("ignore")
    with jaxscope.no_recompiles(after=0):
        child = os.fork()
        if child == 0:
            raise ChildLeaves  # up through the block
        notes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        plain(x(27))


class ChildLeaves(BaseException):
    pass


@scenario
def negative(notes):
    jaxscope.no_recompiles(after=-1)


@scenario
def text(notes):
    jaxscope.no_recompiles("2")


@scenario
def not_a_function(notes):
    jaxscope.no_recompiles(after=0)(3)


@scenario
def a_class(notes):
    jaxscope.no_recompiles(after=0)(dict)


def main():
    said = {}
    for each in SCENARIOS:
        notes, raised, words = [], None, ""
        try:
            each(notes)
        except ChildLeaves:
            os._exit(0)
        except Exception as e:
            raised, words = type(e).__name__, str(e)
        left = [p.name for p in Path(tempfile.gettempdir()).glob("jaxscope-*")]
        said[each.__name__.rstrip("_")] = {"raised": raised, "text": words, "notes": notes, "left": left}
    print(json.dumps(said))


main()
