"""Events with a count that continues to grow after the event is written.

The current value of the count is in the counts file, a memory-mapped array of integers beside the log of the
process (``log.counts``). The event has the index of the count in that file.
"""

from __future__ import annotations

from jaxscope.schema.event import Event


class MissesCounted(Event, frozen=True, tag="MissesCounted"):
    """A function missed JAX's C++ fast path again with an unchanged cache key. Misses of this kind are only
    counted; each other miss has an event (``Missed``).

    Attributes:
      function: id of the function.
      count: number of these misses since the start of the recording.
      cell: where the count continues after this event: an index in the counts file, an array of integers
        beside the log of the process. None: the file has no such number, and only later events have newer
        counts.
    """

    function: str = ""
    count: int = 0
    cell: int | None = None


class Step(Event, frozen=True, tag="Step"):
    """A step of the program's training loop ended. At most ten of these events are written per second.

    Attributes:
      index: number of the step, from 1.
      cell: where the number of ended steps continues after this event: an index in the counts file, an array
        of integers beside the log of the process. None: only later events have newer numbers.
    """

    index: int = 0
    cell: int | None = None


class StepTimed(Event, frozen=True, tag="StepTimed"):
    """The time at which a training step ended, from which the time per step is computed.

    The event is written for each of the first steps, later each time the number of steps has grown by a
    quarter. Just before it, Transferred events are written, with the totals of this thread's transfers up to
    the end of the step.

    Attributes:
      step: number of the step that ended. If the calls of a function count as steps, each call ends the
        previous step. The first call ends step 0, which is everything before it.
      marked: whether the program marks the ends of its steps with ``jaxscope.step()``; False: the calls of a
        function count as steps.
      clock_ns: the time in nanoseconds by ``time.perf_counter_ns``. Only differences of two times have a
        meaning.
    """

    step: int = 0
    marked: bool = False
    clock_ns: int = 0


class Called(Event, frozen=True, tag="Called"):
    """The number of calls of a watched function (``@jaxscope.watch``, ``--step-function``) so far.

    Attributes:
      function: id of the function.
      count: number of calls since the start of the recording.
      cell: where the count continues after this event: an index in the counts file, an array of integers
        beside the log of the process. None: only later events have newer counts.
    """

    function: str = ""
    count: int = 0
    cell: int | None = None


class Brought(Event, frozen=True, tag="Brought"):
    """The number of calls of a watched function (``@jaxscope.watch``) that passed a certain number of bytes
    in NumPy arguments.

    There is one count for each number of bytes, so that the sizes of a varying argument can be weighted by
    calls. If all calls pass the same number of bytes, nothing is written.

    Attributes:
      function: id of the function.
      bytes: bytes of the NumPy arguments of one call, after conversion to jax.Array; may be 0.
      count: number of calls with this number of bytes since the start of the recording.
      cell: where the count continues after this event: an index in the counts file, an array of integers
        beside the log of the process. None: only later events have newer counts.
      lost: whether the bytes of later calls are unknown, because the arguments could not be read.
    """

    function: str = ""
    bytes: int = 0
    count: int = 0
    cell: int | None = None
    lost: bool = False


Counted = MissesCounted | Step | Called | Brought
