"""The events of numbers that go on growing in the small file beside a process's log (log.counts)."""

from __future__ import annotations

from jaxscope.schema.event import Event


class MissesCounted(Event, frozen=True, tag="MissesCounted"):
    """Further fast-path misses with an unchanged key, counted only: ``count`` since the start.

    ``cell``: where in the process's counts (log.counts) the number goes on growing; None: only here.
    """

    function: str = ""
    count: int = 0
    cell: int | None = None


class Step(Event, frozen=True, tag="Step"):
    """Step ``index`` (from 1) ended. At most ten a second are written; misses carry their step.

    ``cell``: as of MissesCounted.
    """

    index: int = 0
    cell: int | None = None


class Called(Event, frozen=True, tag="Called"):
    """``count`` calls of a watched function so far. ``cell``: as of MissesCounted."""

    function: str = ""
    count: int = 0
    cell: int | None = None


class Brought(Event, frozen=True, tag="Brought"):
    """``count`` calls of a watched function that brought ``bytes`` of NumPy's, where calls bring different ones.

    Attributes:
      bytes: of one call, as JAX has them; may be 0.
      count: such calls since the start. ``cell``: as of MissesCounted.
      lost: from now on it is not known what calls bring.
    """

    function: str = ""
    bytes: int = 0
    count: int = 0
    cell: int | None = None
    lost: bool = False


Counted = MissesCounted | Step | Called | Brought
