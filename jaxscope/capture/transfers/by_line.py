"""Count copies between host and devices by the program's line, and write them as Transferred.

``device_to_host`` and ``host_to_device`` observe the copies. Each event has the totals of a line so far; the
next is written when the count has grown by a quarter: a loop of 100,000 ``float(x)`` writes about fifty.
"""

from __future__ import annotations

import functools
import linecache
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import frames, shield
from jaxscope.schema.events import Transferred
from jaxscope.schema.file_owner import Standing
from jaxscope.schema.keys import Frame

TO_HOST, TO_DEVICE, BETWEEN = "device_to_host", "host_to_device", "device_to_device"

GROWN = 1.25
WAITED_NS = 100_000  # an accelerator sends a value that is computed already in less time
CLOSE = (
    5  # a wait is close to the transfer before if this many times its length is longer than the time since
)
FIRST_CHECKS = 4  # waits, then those that are powers of two
MOST_CHECKED = 2000  # arrays
MAX_ROWS = 500
MAX_KNOWN = 4096  # code objects, and lines, in each cache
MAX_WAYS = 8
MAX_INSIDE = 64  # copies that are remembered because another may have begun before them
MAX_TEXT = 60
MAX_SOURCE_BYTES = 4_000_000

_JAX, _LIBRARY, _PROGRAM, _SKIPPED = range(4)
_OWNERS = {Standing.USER: _PROGRAM, Standing.INSTALLED: _LIBRARY, Standing.LIBRARY: _SKIPPED}


class _Code(NamedTuple):
    """The owner of a code object.

    Attributes:
      via: of JAX's code, the name of a copy made below it.
      call: of JAX's code, whether it is a jitted call.
    """

    code: CodeType
    owner: int
    via: str | None = None
    call: bool = False


class Row:
    """The copies in one direction that one line of the program causes. Times are of
    ``time.perf_counter_ns``."""

    __slots__ = (
        "ahead", "bytes", "caller", "checks", "close", "count", "direction", "due", "first", "first_step",
        "last", "last_step", "now", "ns", "site", "step_ns",
        "steps", "text", "unnumbered", "via", "views", "waits", "written",
    )  # fmt: skip

    def __init__(self, direction: str, via: str, site: Frame | None, text: str | None) -> None:
        self.direction = direction
        self.via = via
        self.site = site
        self.text = text
        self.count = self.views = self.waits = self.steps = self.close = self.checks = self.ahead = 0
        self.caller: Frame | None = None
        self.written: tuple[int | None, ...] = (0, 0, 0, 0)  # ``_figures`` of the latest event
        self.due = 1
        self.bytes: int | None = 0
        self.ns: int | None = 0
        self.step_ns = 0
        self.first = self.last = 0
        self.now: int | None = -1  # the step of the latest copy
        self.unnumbered = False  # there was a copy before steps were counted
        self.first_step: int | None = None
        self.last_step: int | None = None


class Transfers:
    """The transfers of one recording, summed by line.

    Args:
      emit: receives the events.
      step: returns the present step; None: steps are not counted.
      marked: returns whether steps are counted by marks at their ends; then copies
        before the first were in step 1.
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
        self.after: Callable[[FrameType], None] | None = None  # called after each transfer
        self._codes: dict[int, _Code] = {}
        # The code of JAX's functions that copy the arguments of a callback, innermost first, up to the one
        # that calls it
        self.ways_to_callbacks: deque[tuple[CodeType, ...]] = deque(maxlen=MAX_WAYS)
        self._places: dict[
            tuple[int, int, str, str, int, int], tuple[CodeType, CodeType | None, Row | None]
        ] = {}
        self.forked()

    def forked(self) -> None:
        """Start anew in a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.RLock()  # a signal handler may interrupt this code and copy
        self.step_thread = threading.get_ident()  # the one that ended the latest step
        # The latest copies of that thread: when each began, and how long it took
        self._latest: deque[tuple[int, int]] = deque(maxlen=MAX_INSIDE)
        self._rows: dict[tuple[str, str, str, int], Row] = {}
        self._places.clear()

    def row(self, frame: FrameType | None, direction: str, via: str, *, in_calls: bool = True) -> Row | None:
        """Return the row of the program's line that called ``frame``, a frame of JAX; about 1 us from a
        cache.

        None for a copy that is not counted because JAX makes it for itself, for example before it calls a
        callback.

        Args:
          via: name of the copy where none of JAX's functions on the stack has one.
          in_calls: whether copies made for a jitted call count.
        """
        installed: FrameType | None = None
        f = frame
        while f is not None:
            code = self._code(f)
            if code.owner == _JAX:
                if (code.call and not in_calls) or code.via == jax_internals.CALLBACK:
                    return None
                if via != jax_internals.CONSTANT:
                    via = code.via or via
            elif code.owner == _PROGRAM:
                break
            elif code.owner == _LIBRARY and installed is None:
                installed = f
            f = f.f_back
        f = f or installed
        if f is None:
            return self._of(direction, via, None, None)
        above = f.f_back.f_code if f.f_back is not None else None
        key = (
            id(f.f_code),
            f.f_lasti,
            direction,
            via,
            id(above),
            f.f_back.f_lasti if f.f_back is not None else 0,
        )
        cached = self._places.get(key)
        if cached is None or cached[0] is not f.f_code or cached[1] is not above:
            row = None
            if not self._in_callback(f):
                row = self._of(direction, via, frames.location(f), _text(f), self._caller(f))
            if len(self._places) >= MAX_KNOWN:
                self._places.clear()
            cached = self._places[key] = (f.f_code, above, row)
        return cached[2]

    def for_callback(self, frame: FrameType, event_frame: FrameType) -> bool:
        """Return whether ``frame``, a frame of JAX, is about to call a callback of the program.

        Args:
          event_frame: ``frame`` or a frame that it called, which announced an event.
        """
        for f in frames.walk(frame):
            code = self._code(f)
            if code.owner != _JAX:
                return False
            if code.via == jax_internals.CALLBACK:
                self.ways_to_callbacks.append(_codes_up_to(f, event_frame)[1:])
                return True
        return False

    def add(
        self,
        row: Row,
        count: int,
        size: int | None,
        ns: int | None,
        *,
        began: int | None = None,
        view: bool = False,
    ) -> None:
        """Add ``count`` copies of ``size`` bytes in all, which took ``ns``; 0: another shard of a counted
        copy.

        Args:
          began: when, by ``time.perf_counter_ns``; needed where ``ns`` is known.
        """
        step = self._step()
        event = None
        waited = count and ns is not None and ns > WAITED_NS
        if waited and (row.waits < FIRST_CHECKS or row.waits & (row.waits - 1) == 0):
            ahead = shield.attempt("run_ahead", _computes)
            row.checks += ahead is not None
            row.ahead += bool(ahead)
        with self._lock:
            before, row.last = row.last, time.perf_counter_ns()
            row.first = row.first or row.last
            row.count += count
            row.views += count if view else 0
            if waited:
                row.waits += count
                row.close += bool(before and ns is not None and CLOSE * ns > row.last - before)
            row.bytes = None if row.bytes is None or size is None else row.bytes + size
            row.ns = None if row.ns is None or ns is None else row.ns + ns
            if ns and began is not None and threading.get_ident() == self.step_thread:
                row.step_ns += self._alone(began, ns)
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
        if self.after is not None:
            self.after(sys._getframe(1))

    def _alone(self, began: int, ns: int) -> int:
        """Return ``ns``, which a copy took, without what copies during it took, which counted already."""
        inside = 0
        while self._latest and self._latest[-1][0] >= began:
            inside += self._latest.pop()[1]
        self._latest.append((began, ns))
        return max(0, ns - inside)

    def flush(self) -> None:
        """Write the rows that changed since they were written."""
        with self._lock:
            rows = [row for row in self._rows.values() if row.count and row.written != self._figures(row)]
            events = [self._event(row) for row in rows]
        for event in events:
            self._emit(event)

    def _figures(self, row: Row) -> tuple[int, int | None, int | None, int]:
        counted = self._step() is not None
        steps = row.steps + (row.unnumbered and self._marked()) if counted else None
        return row.count, row.bytes, steps, row.step_ns

    def _event(self, row: Row) -> Transferred:
        row.written = figures = self._figures(row)
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
            step_seconds=row.step_ns / 1e9,
            steps=figures[2],
            first_step=1 if early else row.first_step,
            last_step=1 if early and row.last_step is None else row.last_step,
            first_ns=wall - (now - row.first),
            last_ns=wall - (now - row.last),
            close=row.close,
            checks=row.checks,
            ahead=row.ahead,
            caller=row.caller,
        )

    def _caller(self, f: FrameType) -> Frame | None:
        """Return the program's line that called the function that ``f`` runs."""
        above = f.f_back
        while above is not None and self._code(above).owner == _SKIPPED:
            above = above.f_back
        return frames.location(above) if above is not None and self._code(above).owner == _PROGRAM else None

    def _of(
        self, direction: str, via: str, site: Frame | None, text: str | None, caller: Frame | None = None
    ) -> Row:
        key = (direction, via, site.file if site is not None else "", site.line if site is not None else 0)
        with self._lock:
            row = self._rows.get(key)
            if row is None and len(self._rows) >= MAX_ROWS and site is not None:
                return self._of(direction, via, None, None)
            if row is None:
                row = self._rows[key] = Row(direction, via, site, text)
                row.caller = caller
            elif row.text != text:
                row.text = None
            if row.caller != caller:
                row.caller = None
            return row

    def _code(self, f: FrameType) -> _Code:
        """Return the owner of the code that ``f`` runs, from a cache."""
        code = f.f_code
        known = self._codes.get(id(code))
        if known is not None and known.code is code:
            return known
        if jax_internals.in_jax(f):
            name = code.co_name
            if name == "<genexpr>":  # of the method that contains it
                name = code.co_qualname.removesuffix(".<locals>.<genexpr>").rpartition(".")[2]
            known = _Code(
                code, _JAX, jax_internals.TRANSFER_FRAMES.get(name), name in jax_internals.call_frames()
            )
        else:
            known = _Code(code, _OWNERS[frames.standing(f)])
        if len(self._codes) >= MAX_KNOWN:
            self._codes.clear()
        self._codes[id(code)] = known
        return known

    def _in_callback(self, f: FrameType) -> bool:
        """Return whether JAX called this function as a callback, with arrays that are on the host already."""
        return any(
            jax_internals.TRANSFER_FRAMES.get(g.f_code.co_name) == jax_internals.CALLBACK
            and jax_internals.in_jax(g)
            for g in frames.walk(f.f_back)
        )


class EndedCall(functools.partial[Any]):
    """A function that C code calls once and then releases, which calls ``ended``."""

    ended: Callable[[], None]

    def __del__(self) -> None:
        shield.attempt("host_copies", self.ended)


def _computes() -> bool:
    """Return whether a device still computes an array. Waits for none."""
    live = (a for client in jax_internals.clients() for a in client.live_arrays())
    return any(not a.is_deleted() and not a.is_ready() for a in islice(live, MOST_CHECKED))


def _codes_up_to(last: FrameType, frame: FrameType) -> tuple[CodeType, ...]:
    """Return the code of ``frame`` and its callers up to ``last``."""
    codes = []
    for f in frames.walk(frame):
        codes.append(f.f_code)
        if f is last:
            break
    return tuple(codes)


def _text(f: FrameType) -> str | None:
    """Return the source of the expression that ``f`` is at; None where it cannot be read."""
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
    """Return whether ``file`` is a regular file of limited size: a program may come through a pipe."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES
