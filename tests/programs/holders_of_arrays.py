"""Arrays held in each of the ways that programs hold arrays, with the name of each."""

import asyncio
import collections
import functools
import itertools
import queue
import threading

import jax.numpy as jnp
import numpy as np

import jaxscope

sizes = itertools.count(1)


def made():
    return jnp.asarray(np.ones(next(sizes), "float32"))  # of a size of its own


class Agent:
    def __init__(self):
        self.__params = made()  # -> agent.__params


class Frozen:
    __slots__ = ("__hidden",)

    def __init__(self):
        self.__hidden = made()  # -> frozen.__hidden


agent, frozen = Agent(), Frozen()


@functools.lru_cache(None)
def table(n):
    return made()  # -> table.<cache>[*]


@functools.lru_cache(100)
def hits(n):
    return made()  # -> hits.<cache>[*]


table(2), hits(3)
recent = collections.deque([made()], maxlen=50)  # -> recent[*]
waiting = queue.Queue(maxsize=70)
waiting.put(made())  # -> waiting.queue[*]
batches = itertools.cycle([made()])  # -> batches[*]
next(batches)
pairs = zip([made()], [made()], strict=True)  # -> pairs[*][*]
mapped = map(abs, iter([made()]))  # -> mapped[*][*]
view = {"w": made()}.values()  # -> view['w']
append = [made()].append  # -> append[*]
of_thread = threading.local()
of_thread.x = made()  # -> of_thread.x
objects = np.empty((1, 2), object)
objects[0, 0] = made()  # -> objects[*]


def generate():
    inner = made()  # -> generator.<locals>.inner
    yield inner


generator = generate()
next(generator)


def fail():
    large = made()  # -> error.__traceback__.<locals>.large
    raise ValueError(str(large.shape))


try:
    fail()
except ValueError as e:
    error = e


async def load(started):
    batch = made()  # -> task.<locals>.batch
    started.set()
    await asyncio.sleep(9)
    del batch


async def main():
    started = asyncio.Event()
    task = asyncio.create_task(load(started))
    await started.wait()
    jaxscope.snapshot()
    task.cancel()


asyncio.run(main())
