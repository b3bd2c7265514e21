"""Events with counts of steps and calls. Most counts continue to grow after the event is written.

The current value is in the counts file, a memory-mapped array of integers beside the log of the process
(``log.counts``). The field ``cell`` of the event is the index of the count in that file.
"""

from __future__ import annotations

from jaxscope.schema.event import Event


class MissesCounted(Event, frozen=True, tag="MissesCounted"):
    """A function missed JAX's C++ fast path several times in a row with the same jaxpr and the same types of
    arguments. The first few of these misses have an event (``Missed``); the later ones are only counted here.

    Attributes:
      function: id of the function.
      count: number of misses without an event since the start of the recording.
      cell: index in the counts file (an array of integers beside the log) at which this count goes on
        growing. None: it is not in that file; only later events have newer counts.
    """

    function: str = ""
    count: int = 0
    cell: int | None = None


class Step(Event, frozen=True, tag="Step"):
    """A step of the program's training loop ended, because the program called ``jaxscope.step()``. If steps
    are short, only some of them have an event.

    Attributes:
      index: number of the step that ended, from 1.
      cell: index of the number of ended steps in the counts file (an array of integers beside the log), where
        it continues. None: it does not; only later events have newer numbers.
    """

    index: int = 0
    cell: int | None = None


class StepTimed(Event, frozen=True, tag="StepTimed"):
    """The time at which a training step ended. It is written for each of the first steps, later each time the
    number of steps has grown by a quarter. Transferred events with the totals of all transfers so far are
    written before it.

    Attributes:
      step: number of the step that ended. If calls of a function count as steps, each call ends the step
        before it. Step 0 is the time before the first call.
      marked: True if calls of ``jaxscope.step()`` end the steps; False if calls of a function count as steps.
      clock_ns: the time by ``time.perf_counter_ns``. Only differences of two such times have a meaning.
    """

    step: int = 0
    marked: bool = False
    clock_ns: int = 0


class Called(Event, frozen=True, tag="Called"):
    """The number of calls of a watched function (``@jaxscope.watch``, ``--step-function``) so far.

    Attributes:
      function: id of the function.
      count: number of calls since the start of the recording.
      cell: index in the counts file (an array of integers beside the log) at which this count goes on
        growing. None: it is not in that file; only later events have newer counts.
    """

    function: str = ""
    count: int = 0
    cell: int | None = None


class Brought(Event, frozen=True, tag="Brought"):
    """The number of calls of a watched function (``@jaxscope.watch``) that passed a certain number of bytes
    in NumPy arguments.

    Each number of bytes has a count of its own. No counts are written if all calls pass the same number of
    bytes.

    Attributes:
      function: id of the function.
      bytes: bytes of the NumPy arguments of one call, after conversion to jax.Array; may be 0.
      count: number of calls with this number of bytes since the start of the recording.
      cell: index in the counts file (an array of integers beside the log) at which this count goes on
        growing. None: it is not in that file; only later events have newer counts.
      lost: True: the bytes of the function's calls are unknown from now on, because the arguments could not
        be read; ``bytes`` and ``count`` have no meaning.
    """

    function: str = ""
    bytes: int = 0
    count: int = 0
    cell: int | None = None
    lost: bool = False


Counted = MissesCounted | Step | Called | Brought
