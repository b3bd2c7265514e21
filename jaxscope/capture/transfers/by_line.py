"""What crosses between host and devices, by the program's line: counted here, told as Transferred.

Owns whose line a copy is and when there is a word to write; knows nothing of how copies are seen
(device_to_host and host_to_device do). One event tells of everything so far, and the next follows when a
count has grown by a quarter: a loop of 100,000 ``float(x)`` writes some fifty.
"""

from __future__ import annotations

import linecache
import stat
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import frames
from jaxscope.schema.events import Transferred
from jaxscope.schema.file_owner import Standing
from jaxscope.schema.keys import Frame

TO_HOST, TO_DEVICE, BETWEEN = "device_to_host", "host_to_device", "device_to_device"

GROWN = 1.25
WAITED_NS = 100_000  # what is there already takes an accelerator less to send
MAX_ROWS = 500
MAX_KNOWN = 4096  # code objects and places remembered
MAX_TEXT = 60
MAX_SOURCE_BYTES = 4_000_000

_JAX, _LIBRARY, _PROGRAM, _NOBODY = range(4)
_WHOSE = {Standing.USER: _PROGRAM, Standing.INSTALLED: _LIBRARY, Standing.LIBRARY: _NOBODY}


class _Known(NamedTuple):
    """Whose ``code`` is; of JAX's, what a copy below it is called, and whether it is a jitted call's."""

    code: CodeType
    whose: int
    via: str | None = None
    call: bool = False


class Row:
    """One line of the program that moves data one way. Times are of ``time.perf_counter_ns``."""

    __slots__ = (
        "bytes", "count", "direction", "due", "first", "first_step", "last", "last_step", "now", "ns", "site",
        "steps", "text", "told", "unnumbered", "via", "views", "waits",
    )  # fmt: skip

    def __init__(self, direction: str, via: str, site: Frame | None, text: str | None) -> None:
        self.direction = direction
        self.via = via
        self.site = site
        self.text = text
        self.count = self.views = self.waits = self.steps = 0
        self.told: tuple[int | None, ...] = (0, 0, 0)  # count, bytes and steps in the latest event
        self.due = 1
        self.bytes: int | None = 0
        self.ns: int | None = 0
        self.first = self.last = 0
        self.now: int | None = -1  # the step it was seen in last
        self.unnumbered = False  # and before anybody counted steps
        self.first_step: int | None = None
        self.last_step: int | None = None


class Transfers:
    """The rows of one recording.

    Args:
      emit: where events go.
      step: the step that runs now; None where nothing counts steps.
      marked: are steps counted by marks at their ends? Then what came before the first was in step 1.
    """

    def __init__(
        self,
        emit: Callable[[Transferred], None],
        step: Callable[[], int | None],
        marked: Callable[[], bool],
    ) -> None:
        self._emit = emit
        self._step = step
        self._marked = marked
        self._codes: dict[int, _Known] = {}
        self._places: dict[tuple[int, int, str, str, int], tuple[CodeType, CodeType | None, Row | None]] = {}
        self.forked()

    def forked(self) -> None:
        """In a forked child: a thread of the parent may have held the lock, and its counts are its own."""
        self._lock = threading.RLock()  # a signal's handler may come in the midst of us, and copy
        self._rows: dict[tuple[str, str, str, int], Row] = {}
        self._places.clear()

    def row(self, frame: FrameType | None, direction: str, via: str, *, in_calls: bool = True) -> Row | None:
        """The row of the program's line above ``frame``, which is JAX's; about 1 us where it is known.

        ``via``: what it is where none of JAX's functions on the way says more. ``in_calls``: also what is
        done for a jitted call. None: it is not, or it is JAX's own doing, such as what it does before it
        calls a callback of the program's.
        """
        codes = self._codes
        asked: FrameType | None = None
        f = frame
        while f is not None:
            code = f.f_code
            known = codes.get(id(code))
            if known is None or known.code is not code:
                known = self._learn(f)
            whose = known.whose
            if whose == _JAX:
                if (known.call and not in_calls) or known.via == jax_internals.CALLBACK:
                    return None
                if via != jax_internals.CONSTANT:
                    via = known.via or via
            elif whose == _PROGRAM:
                break
            elif whose == _LIBRARY and asked is None:
                asked = f
            f = f.f_back
        f = f or asked
        if f is None:
            return self._of(direction, via, None, None)
        above = f.f_back.f_code if f.f_back is not None else None
        key = (id(f.f_code), f.f_lasti, direction, via, id(above))
        found = self._places.get(key)
        if found is None or found[0] is not f.f_code or found[1] is not above:
            row = None if self._in_callback(f) else self._of(direction, via, frames.location(f), _text(f))
            if len(self._places) >= MAX_KNOWN:
                self._places.clear()
            found = self._places[key] = (f.f_code, above, row)
        return found[2]

    def for_callback(self, frame: FrameType) -> bool:
        """Is ``frame``, which is JAX's, on its way to a callback of the program's? Then it is nobody's line."""
        f: FrameType | None = frame
        while f is not None:
            known = self._codes.get(id(f.f_code))
            if known is None or known.code is not f.f_code:
                known = self._learn(f)
            if known.whose != _JAX:
                return False
            if known.via == jax_internals.CALLBACK:
                return True
            f = f.f_back
        return False

    def add(self, row: Row, count: int, size: int | None, ns: int | None, *, view: bool = False) -> None:
        """``count`` more (0: another part of one that was counted) of ``size`` bytes, that took ``ns``."""
        step = self._step()
        event = None
        with self._lock:
            row.last = time.perf_counter_ns()
            row.first = row.first or row.last
            row.count += count
            row.views += count if view else 0
            row.waits += count if ns is not None and ns > WAITED_NS else 0
            row.bytes = None if row.bytes is None or size is None else row.bytes + size
            row.ns = None if row.ns is None or ns is None else row.ns + ns
            if step != row.now:
                row.now = step
                if step is None:
                    row.unnumbered = True
                elif step > 0 and step != row.last_step:
                    row.steps += 1
                    row.first_step = step if row.first_step is None else row.first_step
                    row.last_step = step
            if row.count >= row.due:
                event = self._event(row)
        if event is not None:
            self._emit(event)

    def flush(self) -> None:
        """Tell of what grew since it was told."""
        with self._lock:
            rows = [row for row in self._rows.values() if row.count and row.told != self._figures(row)]
            events = [self._event(row) for row in rows]
        for event in events:
            self._emit(event)

    def _figures(self, row: Row) -> tuple[int, int | None, int | None]:
        counted = self._step() is not None
        return row.count, row.bytes, row.steps + (row.unnumbered and self._marked()) if counted else None

    def _event(self, row: Row) -> Transferred:
        row.told = figures = self._figures(row)
        row.due = int(row.count * GROWN) + 1
        now, wall = time.perf_counter_ns(), time.time_ns()
        early = row.unnumbered and self._marked()
        return Transferred(
            direction=row.direction,
            via=row.via,
            site=row.site,
            text=row.text,
            count=row.count,
            bytes=row.bytes,
            views=row.views,
            waits=row.waits,
            seconds=None if row.ns is None else row.ns / 1e9,
            steps=figures[2],
            first_step=1 if early else row.first_step,
            last_step=1 if early and row.last_step is None else row.last_step,
            first_ns=wall - (now - row.first),
            last_ns=wall - (now - row.last),
        )

    def _of(self, direction: str, via: str, site: Frame | None, text: str | None) -> Row:
        key = (direction, via, site.file if site is not None else "", site.line if site is not None else 0)
        with self._lock:
            row = self._rows.get(key)
            if row is None and len(self._rows) >= MAX_ROWS and site is not None:
                return self._of(direction, via, None, None)
            if row is None:
                row = self._rows[key] = Row(direction, via, site, text)
            elif row.text != text:
                row.text = None
            return row

    def _learn(self, f: FrameType) -> _Known:
        code = f.f_code
        if jax_internals.in_jax(f):
            name = code.co_name
            if name == "<genexpr>":  # of the method that made it
                name = code.co_qualname.removesuffix(".<locals>.<genexpr>").rpartition(".")[2]
            known = _Known(
                code, _JAX, jax_internals.TRANSFER_FRAMES.get(name), name in jax_internals.call_frames()
            )
        else:  # nobody's: logging formats what it was given elsewhere
            known = _Known(code, _WHOSE[frames.standing(f)])
        if len(self._codes) >= MAX_KNOWN:
            self._codes.clear()
        self._codes[id(code)] = known
        return known

    def _in_callback(self, f: FrameType) -> bool:
        """Was this function called by JAX, with arrays that are on the host already?"""
        return any(
            jax_internals.TRANSFER_FRAMES.get(g.f_code.co_name) == jax_internals.CALLBACK
            and jax_internals.in_jax(g)
            for g in frames.walk(f.f_back)
        )


def _text(f: FrameType) -> str | None:
    """The expression that ``f`` is at, as it stands in the source; None where that cannot be read."""
    at = next(islice(f.f_code.co_positions(), f.f_lasti // 2, None), None)
    if at is None or None in at:
        return None
    first, last, begin, end = at
    assert first is not None
    file = f.f_code.co_filename
    if file not in linecache.cache and not _readable(file):
        return None
    # Positions count UTF-8 bytes.
    source = linecache.getline(file, first).rstrip("\n").encode("utf-8", "surrogatepass")
    text = source[begin : end if last == first else None].decode("utf-8", "replace").strip()
    if last != first:
        text += " ..."
    return (text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "...") or None


def _readable(file: str) -> bool:
    """An ordinary file of ordinary size: a program may come through a pipe."""
    try:
        found = Path(file).stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= MAX_SOURCE_BYTES
