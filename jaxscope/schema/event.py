"""The base class of the events in a log."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="kind", omit_defaults=True):
    """The base class of the events in a log, with the fields that all events have.

    Attributes:
      seq: number of the event in the log of its process, from 0.
      t_ns: when the event was written, in nanoseconds since the epoch (wall clock). For CompilerWarned: when
        XLA printed the warning.
      pid, thread: the process and the thread that wrote the event; ``thread`` is the result of
        ``threading.get_ident()``.
      process_index: ``jax.process_index()`` of the process; None: unknown, as before JAX's backend is
        initialized.
    """

    seq: int = 0
    t_ns: int = 0
    pid: int = 0
    thread: int = 0
    process_index: int | None = None
