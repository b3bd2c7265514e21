"""The event of what crosses between host and devices."""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Frame


class Transferred(Event, frozen=True, tag="Transferred"):
    """All transfers in one direction by one line of the program since its process began to record.

    Attributes:
      direction: device_to_host, host_to_device or device_to_device.
      via: how: float, int, bool, item, tolist, print, format, np.asarray, device_get, device_put, ...
      site: the user's line; None: no line of the program caused it, or there were too many lines.
      text: the expression in the source, shortened; None: several on this line, or no source.
      count: number of transfers. For device_to_host, only the first read of each array counts, because JAX
        keeps the copy for later reads.
      bytes: bytes of all transfers; None if one is unknown.
      views: how many of them shared the device's memory, so that nothing was copied.
      waits: how many of them took longer than 0.1 ms.
      seconds: seconds that the program was blocked, waiting for the computation included; None: not measured.
      step_seconds: the measured seconds of the thread that ends the steps (``StepTimed``), a part of
        ``seconds``; a copy during another copy counts once.
      steps: number of steps with such a transfer; None: steps are not counted.
      first_step, last_step: the first and the last of these steps.
      caller: the user's line that called the function of ``site``; None: several lines, or no user's.
      first_ns, last_ns: wall clock of the first and the last transfer.
      close: how many of ``waits`` took at least a fifth of the time since the previous transfer.
      checks: how many of ``waits`` were followed by a check whether the device still had work.
      ahead: how many of ``checks`` found work: the program had queued later work before it waited.
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
