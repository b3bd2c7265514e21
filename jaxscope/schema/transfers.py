"""The event of transfers (copies of arrays) between host and devices."""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Frame


class Transferred(Event, frozen=True, tag="Transferred"):
    """All transfers in one direction that one line of the program has caused since the recording began.

    jaxscope writes the event again when the totals have grown; the latest event of a line replaces the
    earlier ones.

    Attributes:
      direction: device_to_host, host_to_device or device_to_device.
      via: the function that caused the transfers: float, int, bool, item, tolist, print, format, np.asarray,
        device_get, device_put, ...
      site: the user's line; None: no line of the program caused the transfers, or there were too many lines.
      text: the expression in the source, shortened; None: the line has several expressions, or there is no
        source.
      count: number of transfers. For device_to_host, only the first read of each array counts, because JAX
        keeps the copy for later reads.
      bytes: bytes of all transfers; None: the bytes of a transfer are unknown.
      views: number of transfers without a copy, because the host reads the device's memory (CPU devices).
      waits: number of transfers that took longer than 0.1 ms.
      seconds: seconds for which the transfers blocked the program, including the wait for the computation;
        None: not measured.
      step_seconds: the part of ``seconds`` in the thread that runs the training steps. If one transfer runs
        within another, their common time counts once.
      steps: number of steps with such a transfer; None: steps are not counted.
      first_step, last_step: the first and the last of these steps.
      caller: the user's line that called the function of ``site``; None: several lines called it, or no line
        of the user did.
      first_ns, last_ns: wall clock of the first and the last transfer, in nanoseconds since the epoch.
      close: number of the transfers in ``waits`` that took at least a fifth of the time since the previous
        transfer.
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
