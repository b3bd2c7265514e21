"""Show on one line of stderr how much of a large log has been read. Nothing is shown in CI, or if stderr is
no terminal."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `jaxscope run` loads this before the program starts, and model takes longer than the rest
    from jaxscope.model.load import Progress

AFTER_S = 0.4  # most reads are over by then
EVERY_S = 0.1
CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def reading(label: str, *, unit: str | None = None) -> Iterator[Progress | None]:
    """Yield a function ``progress(done, total)`` that shows ``label`` on stderr, with how much has been read.
    Yield None if no progress is shown. ``unit`` is what is counted (``ranks``); None: bytes.

    Python's garbage collection is off until the ``with`` statement ends. Later collections do not search the
    objects that exist at its end.
    """
    automatic = gc.isenabled()
    gc.disable()  # what is read stays in use: searching it for garbage would take as long as reading it
    try:
        with _shown(label, unit) as progress:
            yield progress
    finally:
        if automatic:
            gc.freeze()  # later collections do not search what was read
            gc.set_threshold(1_000_000)  # most objects of the output stay in use, too
            gc.enable()
            atexit.register(gc.freeze)  # the collection at the interpreter's end searches nothing


@contextlib.contextmanager
def _shown(label: str, unit: str | None) -> Iterator[Progress | None]:
    stream = sys.stderr
    if stream is None or os.environ.get("CI") or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    started = shown = time.monotonic()
    written = False

    def progress(done: int, total: int) -> None:
        nonlocal shown, written
        now = time.monotonic()
        if now - started > AFTER_S and now - shown > EVERY_S:
            shown, written = now, True
            whole = f"{total / (1 << 20):.0f} MiB" if unit is None else f"{total:,} {unit}"
            stream.write(f"{CLEAR}{label}: {100 * done // max(1, total)} % of {whole}")
            stream.flush()

    try:
        yield progress
    finally:
        if written:
            stream.write(CLEAR)
            stream.flush()
