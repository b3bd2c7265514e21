"""The event of what crosses between host and devices."""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Frame


class Transferred(Event, frozen=True, tag="Transferred"):
    """What one line of the program moved one way so far, since its process began to record. Never one a copy.

    Attributes:
      direction: device_to_host, host_to_device or device_to_device.
      via: how: float, int, bool, item, tolist, print, format, np.asarray, device_get, device_put, ...
      site: the user's line; None: no line of the program asked for it, or there were too many lines.
      text: the expression as it stands in the source, cut; None: several on this line, or no source.
      count: how often. Of device_to_host the first reading of each array: later ones are served from what
        JAX has kept.
      bytes: of all of them; None: not known of some.
      views: of ``count``, how many shared the device's memory, so that nothing was copied.
      waits: of ``count``, how many took longer than 0.1 ms.
      seconds: in which the program stood there, waiting for the computation included; None: not measured.
      steps: in how many steps; None: nothing counts steps.
      first_step, last_step: in which it was seen first and last.
      first_ns, last_ns: wall clock of the first and the last.
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
    steps: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    first_ns: int = 0
    last_ns: int = 0
