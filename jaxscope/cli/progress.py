"""Show the progress of a long read in a line on stderr, unless stderr is no terminal or this is CI."""

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
def reading(what: str) -> Iterator[Progress | None]:
    """Yield a function ``progress(done, total)`` to call while ``what`` is read."""
    automatic = gc.isenabled()
    gc.disable()  # what is read stays: looking through it for garbage takes as long as reading it
    try:
        with _shown(what) as progress:
            yield progress
    finally:
        if automatic:
            gc.freeze()  # nor is it looked through later, when the answer is made
            gc.set_threshold(1_000_000)  # most of what the answer is made of stays, too
            gc.enable()
            atexit.register(gc.freeze)  # nor when the interpreter ends


@contextlib.contextmanager
def _shown(what: str) -> Iterator[Progress | None]:
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
            stream.write(f"{CLEAR}{what}: {100 * done // max(1, total)} % of {total / (1 << 20):.0f} MiB")
            stream.flush()

    try:
        yield progress
    finally:
        if written:
            stream.write(CLEAR)
            stream.flush()
