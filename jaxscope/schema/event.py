"""The fields that all events have."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="kind", omit_defaults=True):
    """The fields that all events have.

    Attributes:
      seq: number within one process's log, from 0.
      t_ns: wall clock in nanoseconds since the epoch.
      pid, thread: the process and the thread that wrote the event; ``thread`` is Python's
        ``threading.get_ident``.
      process_index: JAX's process index, None until the backend is up.
    """

    seq: int = 0
    t_ns: int = 0
    pid: int = 0
    thread: int = 0
    process_index: int | None = None
