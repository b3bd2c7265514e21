"""The events of transfers (copies of arrays) between host and devices."""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Frame

TO_HOST, TO_DEVICE, BETWEEN = "device_to_host", "host_to_device", "device_to_device"


class Transferred(Event, frozen=True, tag="Transferred"):
    """All transfers in one direction that one line of the program has caused with one function since the
    recording began. Each event replaces the earlier ones of the same line, direction and function.

    Attributes:
      direction: TO_HOST, TO_DEVICE or BETWEEN (devices).
      via: the function that caused the transfers: float, int, bool, item, tolist, print, format, np.asarray,
        device_get, device_put, ...
      site: the user's line, or if there is none, a line of an installed package; None: neither caused the
        transfers, or there were too many lines.
      text: the expression in the source, shortened; None: the line has several expressions, or its source is
        unknown.
      count: number of transfers. For device_to_host, only the first read of each array counts, because JAX
        keeps a copy for later reads.
      bytes: bytes of all these transfers; None: the bytes of at least one are unknown.
      views: number of these transfers for which nothing was copied, because the host reads the device's
        memory (CPU devices).
      waits: number of these transfers that took longer than 0.1 ms.
      seconds: seconds for which the transfers blocked the program, including the wait until the values were
        computed; None: not measured.
      step_seconds: the part of ``seconds`` in the thread that runs the training steps. If a transfer runs
        during another one, their common time counts once.
      steps: number of steps with such a transfer; None: steps are not counted.
      first_step, last_step: the first and the last of these steps.
      caller: the user's line that called the function of ``site``; None: several lines did, or no line of the
        user.
      above: the user's lines that led to the call of the function of ``caller``, innermost first, as far as
        they are the same for all these transfers; at most two.
      first_ns, last_ns: wall clock of the first and the last transfer, in nanoseconds since the epoch.
      close: number of the transfers in ``waits`` that took more than a fifth of the time since the line's
        previous transfer.
      checks: number of the transfers in ``waits`` after which jaxscope checked whether the device still had
        work.
      ahead: number of these checks that found work: the program had queued later work before it waited.
    """

    direction: str = ""
    via: str = ""
    site: Frame | None = None
    text: str | None = None
    count: int = 0
    bytes: int | None = None
    views: int = 0
    waits: int = 0
    seconds: float | None = None
    step_seconds: float = 0.0
    steps: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    first_ns: int = 0
    last_ns: int = 0
    close: int = 0
    checks: int = 0
    ahead: int = 0
    caller: Frame | None = None
    above: list[Frame] = []


class Rounded(Event, frozen=True, tag="Rounded"):
    """A host array was converted to a smaller dtype and lost information: different numbers became equal, or
    integers got another value. Written at most once for each line and argument.

    Attributes:
      site: the program's line that called ``jnp.asarray``, ``jnp.array`` or a jitted function; None: unknown.
      text: the expression on this line, or the name of the jitted function; None: unknown.
      argument: the path of the array in the arguments of the jitted function; None: no such function was
        called.
      before, after: the dtypes: ``float64``, ``float32``.
      share: how many of the examined values lost information, from 0 to 1. For floats, of the pairs of
        neighbors that differed before, the share that is equal afterwards; for integers, the share of the
        numbers whose value changed.
    """

    site: Frame | None = None
    text: str | None = None
    before: str = ""
    after: str = ""
    share: float = 0.0
    argument: str | None = None
