"""Events of counts, which go on growing in the counts file beside a process's log (log.counts)."""

from __future__ import annotations

from jaxscope.schema.event import Event


class MissesCounted(Event, frozen=True, tag="MissesCounted"):
    """A function missed the fast path again with an unchanged key.

    Attributes:
      count: how often since the start of the recording.
      cell: the index in the counts file of the process at which counting continues after this event; None:
        only later events have the count.
    """

    function: str = ""
    count: int = 0
    cell: int | None = None


class Step(Event, frozen=True, tag="Step"):
    """Step ``index`` (from 1) ended. At most ten per second are written; misses have their step.

    ``cell``: as of MissesCounted.
    """

    index: int = 0
    cell: int | None = None


class StepTimed(Event, frozen=True, tag="StepTimed"):
    """Step ``step`` ended: of the first steps each, later when their number has grown by a quarter.

    The events of transfers before this one in the log include all of the thread that wrote it.

    Attributes:
      step: 0 at the first call, where calls are counted.
      marked: steps are counted by marks at their ends, not by calls.
      clock_ns: when, by a clock that is never set; only differences mean something.
    """

    step: int = 0
    marked: bool = False
    clock_ns: int = 0


class Called(Event, frozen=True, tag="Called"):
    """``count`` calls of a watched function so far. ``cell``: as of MissesCounted."""

    function: str = ""
    count: int = 0
    cell: int | None = None


class Brought(Event, frozen=True, tag="Brought"):
    """``count`` calls of a watched function passed ``bytes`` in NumPy arguments. There is one such event
    for each size.

    Attributes:
      bytes: bytes of one call, as jax.Array; may be 0.
      count: number of these calls since the start. ``cell``: as in MissesCounted.
      lost: whether the bytes of later calls are unknown.
    """

    function: str = ""
    bytes: int = 0
    count: int = 0
    cell: int | None = None
    lost: bool = False


Counted = MissesCounted | Step | Called | Brought
