"""Count copies between host and devices by the program's line, and write the events ``Transferred``.

``device_to_host`` and ``host_to_device`` observe the copies. Each event has the totals of one line so far.
The next event for this line is written when its number of copies has grown by a quarter. So a loop of 100,000
``float(x)`` writes about fifty events.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import frames, shield
from jaxscope.schema.events import Rounded, Transferred
from jaxscope.schema.file_owner import Standing
from jaxscope.schema.keys import Frame

GROWN = 1.25
WAITED_NS = 100_000  # a copy that takes longer has waited: a value that is computed already takes less
CLOSE = 5  # a wait is close to the line's previous copy if it took over 1/CLOSE of the time since that copy
FIRST_CHECKS = 4  # check after a line's first waits whether a device still computes, later at powers of two
MOST_CHECKED = 2000  # arrays
COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
MAX_ROWS = 500
MAX_KNOWN = 4096  # entries of each cache of code objects and lines
MAX_CALLERS = 3  # lines of the program that led to the call of the function that copies
MAX_WAYS = 8
MAX_INSIDE = 64  # copies that are remembered because they may be part of a longer one
MAX_TEXT = 60
MAX_SOURCE_BYTES = 4_000_000
_ASSIGNED, _COMMENT = re.compile(rb"\s*=(?!=)"), b"  #"

_JAX, _LIBRARY, _PROGRAM, _SKIPPED = range(4)
_OWNERS = {Standing.USER: _PROGRAM, Standing.INSTALLED: _LIBRARY, Standing.LIBRARY: _SKIPPED}


class _Code(NamedTuple):
    """A code object (the compiled body of a function) and its owner: JAX, a package that the user installed,
    the program, or another library (a library around JAX, jaxscope, Python itself). The search for the
    program's line skips code of another library.

    Attributes:
      owner: _JAX, _LIBRARY (an installed package), _PROGRAM or _SKIPPED (another library).
      via: for code of JAX, the kind of the copies that it makes, such as ``item``; None: these copies have no
        name of their own.
      call: for code of JAX, whether it runs a call of a jitted function.
    """

    code: CodeType
    owner: int
    via: str | None = None
    call: bool = False


class Row:
    """The totals of the copies of one kind in one direction (to host, to device, between devices) that one
    line of the program has caused. Times are in ns of ``time.perf_counter_ns``.

    Args:
      direction: TO_HOST, TO_DEVICE or BETWEEN.
      via: the kind of the copies, such as ``item``.
      site: the program's line, or else a line of an installed package; None: there is none, or too many lines
        have copies.
      text: the expression on this line; None: unknown, or several.

    Attributes:
      views: the number of copies in which nothing was copied, because the host uses the device's memory.
      waits: the number of copies that took longer than WAITED_NS.
      close: how many of the ``waits`` took more than 1/CLOSE of the time since the line's previous copy.
      checks: how many of the ``waits`` were followed by a check of whether a device was still computing.
      checks_ahead: how many of the ``checks`` found a device computing.
      callers: the lines of the program that led to the call of the function of ``site``, innermost first, as
        far as they are the same for all copies; at most MAX_CALLERS.
      step_ns: how long those copies took that were made in the thread that ends the training steps.
      steps: the number of training steps in which the line made a copy.
    """

    __slots__ = (
        "bytes", "callers", "checks", "checks_ahead", "close", "count", "direction", "due", "first",
        "first_step", "last", "last_step", "ns", "site", "step_ns", "step_of_latest",
        "steps", "text", "unnumbered", "via", "views", "waits", "written",
    )  # fmt: skip

    def __init__(self, direction: str, via: str, site: Frame | None, text: str | None) -> None:
        self.direction = direction
        self.via = via
        self.site = site
        self.text = text
        self.count = self.views = self.waits = self.steps = self.close = self.checks = self.checks_ahead = 0
        self.callers: list[Frame] = []
        self.written: tuple[int | None, ...] = (0, 0, 0, 0)  # the result of ``_figures`` for the latest event
        self.due = 1  # the count at which the next event is written
        self.bytes: int | None = 0
        self.ns: int | None = 0
        self.step_ns = 0
        self.first = self.last = 0
        self.step_of_latest: int | None = -1  # the step of the latest copy
        self.unnumbered = False  # whether there was a copy before steps were counted
        self.first_step: int | None = None
        self.last_step: int | None = None


class WayToCallback(NamedTuple):
    """Two functions of JAX, as code objects. While both are on the stack, JAX is copying an array for a
    callback of the program (``jax.pure_callback``, ``jax.debug.callback``).

    Attributes:
      above: how many frames further out ``function`` is than the frame that announces the copy.
      function: the function that is about to call the callback.
      called: the function that ``function`` calls to copy an argument of the callback.
    """

    above: int
    function: CodeType
    called: CodeType


class Transfers:
    """Adds up the copies between host and devices in one recording by the program's line, and writes the
    totals.

    Args:
      emit: is called with each event.
      step: returns the number of the current training step, or None if steps are not counted.
      marked: returns whether steps end at calls of ``jaxscope.step()``. If so, copies before the first such
        call were made in step 1.

    Attributes:
      after: is called with a frame after each copy; None: nothing is called.
      ways_to_callbacks: functions of JAX that were seen on the stack while JAX copied the arguments of a
        callback.
      step_thread: the thread that ended the latest step.
    """

    def __init__(
        self,
        emit: Callable[[Transferred | Rounded], None],
        step: Callable[[], int | None],
        marked: Callable[[], bool],
    ) -> None:
        self._emit = emit
        self._step = step
        self._marked = marked
        self.after: Callable[[FrameType], None] | None = None
        self._codes: dict[int, _Code] = {}
        self.ways_to_callbacks: deque[WayToCallback] = deque(maxlen=MAX_WAYS)
        self._places: dict[tuple[str | int, ...], tuple[list[CodeType], Row | None]] = {}
        self.forked()

    def forked(self) -> None:
        """Forget all copies in a forked child, and count from 0. The lock is replaced, because another thread
        of the parent may have held it."""
        self._lock = threading.RLock()  # reentrant, because a signal handler may interrupt this code and copy
        self.step_thread = threading.get_ident()  # the thread that ended the latest step
        # The latest copies of that thread: when each began, and how long it took.
        self._latest: deque[tuple[int, int]] = deque(maxlen=MAX_INSIDE)
        self._rows: dict[tuple[str, str, str, int], Row] = {}
        self._places.clear()

    def rounded(self, row: Row, before: str, after: str, share: float) -> None:
        """Write that the first copy of the line of ``row`` lost information, by a conversion from the dtype
        ``before`` to ``after``. ``share``, from 0 to 1, is the part that was lost (``rounding.lost``)."""
        self._emit(Rounded(site=row.site, text=row.text, before=before, after=after, share=share))

    def row(self, frame: FrameType | None, direction: str, via: str, *, in_calls: bool = True) -> Row | None:
        """Return the Row (the totals of one line) to which a copy by JAX is to be added: that of the
        program's line that called JAX. Without such a line, it is the Row of a line of an installed package,
        or a Row without a line. Return None for a copy that is not counted: one for a callback or in a
        callback, or one excluded by ``in_calls``.

        Args:
          frame: the innermost frame of JAX.
          direction: TO_HOST, TO_DEVICE or BETWEEN.
          via: the kind of the copy. It is used if it is ``CONSTANT``, or if no function of JAX on the stack
            shows the kind.
          in_calls: whether copies made for a call of a jitted function count.
        """
        installed: FrameType | None = None
        f, codes = frame, self._codes
        while f is not None:
            code = f.f_code
            known = codes.get(id(code))
            if known is None or known.code is not code:
                known = self._code(f)
            owner = known.owner
            if owner == _JAX:
                if (known.call and not in_calls) or known.via == jax_internals.CALLBACK:
                    return None
                if known.via and via != jax_internals.CONSTANT:
                    via = known.via
            elif owner == _PROGRAM:
                break
            elif owner == _LIBRARY and installed is None:
                installed = f
            f = f.f_back
        f = f or installed
        if f is None:
            return self._totals(direction, via, None, None)
        called: list[CodeType] = []
        key: tuple[str | int, ...] = (direction, via)
        at: FrameType | None = f
        while at is not None and len(called) <= MAX_CALLERS:
            called.append(at.f_code)
            key += (id(at.f_code), at.f_lasti)
            at = at.f_back
        cached = self._places.get(key)
        if cached is None or any(a is not b for a, b in zip(cached[0], called, strict=True)):
            row = None
            if not self._in_callback(f):
                row = self._totals(direction, via, frames.location(f), _text(f), self._callers(f))
            if len(self._places) >= MAX_KNOWN:
                self._places.clear()
            cached = self._places[key] = called, row
        return cached[1]

    def for_callback(self, frame: FrameType, event_frame: FrameType) -> bool:
        """Return whether JAX is copying the arguments of a callback of the program, which it is about to
        call. If so, the functions of JAX on the stack are added to ``ways_to_callbacks``.

        Args:
          frame: the innermost frame of JAX.
          event_frame: the frame that announced the copy by an event: ``frame`` itself, or one that it called.
        """
        for f in frames.walk(frame):
            code = self._code(f)
            if code.owner != _JAX:
                return False
            if code.via == jax_internals.CALLBACK:
                codes = _codes_up_to(f, event_frame)
                if len(codes) > 1:
                    self.ways_to_callbacks.append(WayToCallback(len(codes) - 1, codes[-1], codes[-2]))
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
        """Add copies to ``row``, the totals of a line. Log the event ``Transferred`` for this line if its
        number of copies has grown enough since the last event. Then call ``after``.

        Args:
          count: the number of copies; 0 for a further shard of a copy that was counted.
          size: the bytes of all these copies; None: unknown.
          ns: how long the copies took together; None: unknown.
          began: when the copies began, by ``time.perf_counter_ns``; needed if ``ns`` is known.
          view: whether nothing was copied, because the host's array shares the memory of the device.
        """
        step = self._step()
        event = None
        waited = count and ns is not None and ns > WAITED_NS
        if waited and (row.waits < FIRST_CHECKS or row.waits & (row.waits - 1) == 0):
            ahead = shield.attempt("run_ahead", _a_device_computes)
            row.checks += ahead is not None
            row.checks_ahead += bool(ahead)
        with self._lock:
            before, row.last = row.last, time.perf_counter_ns() if began is None else began + (ns or 0)
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
            if step != row.step_of_latest:
                row.step_of_latest = step
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
        """Return how long a copy took by itself, in ns: its whole duration ``ns`` without the durations of
        other copies that were made during it and are counted already. The copy began at ``began``, by
        ``time.perf_counter_ns``."""
        inside = 0
        while self._latest and self._latest[-1][0] >= began:
            inside += self._latest.pop()[1]
        self._latest.append((began, ns))
        return max(0, ns - inside)

    def flush(self) -> None:
        """Write an event ``Transferred`` for each line whose figures have changed since its last event."""
        with self._lock:
            # No event repeats the figures of the line's event before it.
            rows = [row for row in self._rows.values() if row.count and row.written != self._figures(row)]
            events = [self._event(row) for row in rows]
        for event in events:
            self._emit(event)

    def _figures(self, row: Row) -> tuple[int, int | None, int | None, int]:
        """Return the figures by which ``row`` is compared with its last event: (copies, bytes, steps with a
        copy, ns of copies in the thread that ends the steps). Bytes and steps are None if unknown."""
        counted = self._step() is not None
        steps = row.steps + (row.unnumbered and self._marked()) if counted else None
        return row.count, row.bytes, steps, row.step_ns

    def _event(self, row: Row) -> Transferred:
        """Return the event ``Transferred`` with the totals of a line, ``row``. Also set at how many copies
        the next event of this line is logged."""
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
            ahead=row.checks_ahead,
            caller=row.callers[0] if row.callers else None,
            above=row.callers[1:],
        )

    def _callers(self, f: FrameType) -> list[Frame]:
        """Return the program's lines that led to the call of the function which ``f`` runs, innermost first,
        at most MAX_CALLERS. Frames of Python itself and of libraries around JAX are skipped. The list ends
        before a frame of JAX or of an installed package."""
        found: list[Frame] = []
        inside, above = f, f.f_back
        while above is not None and len(found) < MAX_CALLERS:
            # Before Python 3.12, a comprehension has a frame of its own.
            while above is not None and inside.f_code.co_name in COMPREHENSIONS:
                inside, above = above, above.f_back
            while above is not None and self._code(above).owner == _SKIPPED:
                above = above.f_back
            if above is None or self._code(above).owner != _PROGRAM:
                break
            found.append(frames.location(above))
            inside, above = above, above.f_back
        return found

    def _totals(
        self,
        direction: str,
        via: str,
        site: Frame | None,
        text: str | None,
        callers: Sequence[Frame] = (),
    ) -> Row:
        """Return the Row with the totals of a line for copies of the kind ``via``, such as ``item``, in one
        ``direction``. It is created if missing; else its ``callers`` and ``text`` are reduced to what is the
        same for all copies. After MAX_ROWS Rows, all further lines share one Row for each direction and kind.

        Args:
          site: the line; None: no line is known.
          text: the expression on this line; None: unknown.
          callers: the program's lines that led to the call of the function of this line, innermost first.
        """
        key = (direction, via, site.file if site is not None else "", site.line if site is not None else 0)
        with self._lock:
            row = self._rows.get(key)
            if row is None and len(self._rows) >= MAX_ROWS and site is not None:
                return self._totals(direction, via, None, None)
            if row is None:
                row = self._rows[key] = Row(direction, via, site, text)
                row.callers = list(callers)
            elif row.text != text:
                row.text = None
            same = itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(row.callers, callers, strict=False)
            )
            row.callers = [at for at, _ in same]
            return row

    def _code(self, f: FrameType) -> _Code:
        """Return the code object that the frame ``f`` runs, with its owner (JAX, an installed package, the
        program or another library). The results are cached."""
        code = f.f_code
        known = self._codes.get(id(code))
        if known is not None and known.code is code:
            return known
        if jax_internals.in_jax(f):
            name = code.co_name
            if name == "<genexpr>":  # use the name of the method that contains it
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
        """Return whether JAX called the function at ``f`` as a callback of a compiled program, directly or
        through others. Then nothing is copied: the arrays of a callback are on the host already."""
        return any(
            jax_internals.TRANSFER_FRAMES.get(g.f_code.co_name) == jax_internals.CALLBACK
            and jax_internals.in_jax(g)
            for g in frames.walk(f.f_back)
        )


class EndedCall(functools.partial[Any]):
    """A function that C code calls once and then releases: ``EndedCall(function)``. When it is released,
    after the call has returned or raised, it calls ``ended``."""

    ended: Callable[[], None]

    def __del__(self) -> None:
        shield.attempt("host_copies", self.ended)


def _a_device_computes() -> bool:
    """Return whether one of the first MOST_CHECKED live arrays is still being computed, without waiting for
    it."""
    live = (a for client in jax_internals.clients() for a in client.live_arrays())
    return any(not a.is_deleted() and not a.is_ready() for a in itertools.islice(live, MOST_CHECKED))


def _codes_up_to(last: FrameType, frame: FrameType) -> tuple[CodeType, ...]:
    """Return the code objects of the frames from ``frame`` outwards to ``last``, innermost first."""
    codes = []
    for f in frames.walk(frame):
        codes.append(f.f_code)
        if f is last:
            break
    return tuple(codes)


def _text(f: FrameType) -> str | None:
    """Return the source text of the expression that ``f`` is executing: ``float(loss)``. Text beyond its
    first line or MAX_TEXT characters is replaced by ``...``. Return None if the text cannot be read."""
    at = next(itertools.islice(f.f_code.co_positions(), f.f_lasti // 2, None), None)
    if at is None or None in at:
        return None
    first, last, begin, end = at
    assert first is not None
    file = f.f_code.co_filename
    if file not in linecache.cache and not _readable(file):
        return None
    # The columns count bytes of UTF-8.
    source = linecache.getline(file, first).rstrip("\n").encode("utf-8", "surrogatepass")
    if last == first and _ASSIGNED.match(source, end or 0):  # the value is right of the equals sign
        end = len(source.partition(_COMMENT)[0])
    text = source[begin : end if last == first else None].decode("utf-8", "replace").strip()
    if last != first:
        text += " ..."
    return (text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "...") or None


def _readable(file: str) -> bool:
    """Return whether ``file`` is a regular file of limited size, so that reading it is safe."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return False
    # The source of a program may also come through a pipe, which must not be read twice.
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES
