"""Observe copies of arrays to the host, by replacing (and later restoring) methods of JAX's array class.

The C++ methods that copy, and ``item``, are replaced by descriptors. When JAX looks up such a method, the
descriptor notes the time and the program's line. (For ``item``, this is done when the method is called.) The
look-up returns a composition of C functions, which runs JAX's own method and then counts the copy. So no
frame of jaxscope is on the stack while JAX copies, or in a traceback, and exceptions pass unchanged. If the
method is looked up on the class and not on an array, the descriptor returns JAX's method itself.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import shield
from jaxscope.capture.transfers.by_line import EndedCall, Row, Transfers
from jaxscope.schema.transfers import TO_HOST


class HostCopies:
    """Counts copies to the host, by replacing the methods of JAX's array class that copy, from ``install`` to
    ``remove``.

    Args:
      transfers: adds up the copies by the program's line.
    """

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._stands: list[_Replacement] = []
        self._read: dict[int, weakref.ref[Any]] = {}  # arrays whose memory was read without a copy
        self._noted = threading.local()  # ``copies``: the number of copies noted in this thread
        self._by_shard: dict[
            tuple[int, int], bool
        ] = {}  # for each instruction of JAX's ``_value``: whether it copies one shard

    def install(self) -> None:
        """Replace the methods of JAX's array class that copy to the host."""
        array = jax_internals.array_class()
        for name in (*jax_internals.COPY_METHODS, jax_internals.ITEM):
            method = array.__dict__.get(name)
            if method is not None:
                stand = (_Item if name == jax_internals.ITEM else _Copy)(name, method, self)
                self._stands.append(stand)
                setattr(array, name, stand)

    def remove(self) -> None:
        """Restore JAX's methods, except where something else has replaced them meanwhile."""
        array = jax_internals.array_class()
        for stand in self._stands:
            stand.copies = None  # whoever still refers to it gets JAX's method from now on
            if array.__dict__.get(stand.name) is stand:
                setattr(array, stand.name, stand.method)
        self._stands.clear()

    # -- called by the replaced methods --------------------------------------------------------------

    def copying(self, method: Any, array: Any, frame: FrameType) -> Callable[[], Any] | None:
        """Return a callable that copies ``array`` by JAX's C++ ``method`` and counts the copy; None if the
        copy is not to be counted. ``frame`` is JAX's frame that looked up the method. The time of the copy
        begins now."""
        if self._was_read(array) or shield.busy():
            return None
        row = self._transfers.row(frame, TO_HOST, "other")
        if row is None:
            return None
        shard, whole = self._shard(frame)
        ended = functools.partial(self._copied, row, array, shard, whole, time.perf_counter_ns())
        # Only C code runs from here on: next() calls the outer map(), which calls ``ended`` with the method's
        # result.
        return functools.partial(next, map(ended, map(method, (array,))))

    def _copied(
        self, row: Row, array: Any, shard: int | None, whole: int | None, began: int, result: Any
    ) -> Any:
        """Count a finished copy of ``array`` in ``row``, the totals of the program's line. Return ``result``,
        the result of JAX's method.

        Args:
          shard: the number of the shard that was copied; None: the whole array was.
          whole: the bytes of the whole array; None: those of the result are counted.
          began: when the copy began, by ``time.perf_counter_ns``.
          result: (NumPy array, whether JAX copied it).
        """
        ns = time.perf_counter_ns() - began
        shield.attempt("host_copies", self._note, row, array, shard, whole, (began, ns), result)
        return result

    def _note(
        self, row: Row, array: Any, shard: int | None, whole: int | None, time: tuple[int, int], result: Any
    ) -> None:
        """Add a copy of ``array`` to ``row``, the totals of the program's line. If JAX copied nothing,
        because the host uses the device's memory, add only the first reading of the array.

        Args:
          shard: the number of the shard that was copied; None: the whole array was.
          whole: the bytes of the whole array; None: those of the result are counted.
          time: (when the copy began, how long it took) in ns.
          result: (NumPy array, whether JAX copied it).
        """
        began, ns = time
        self._noted.copies = getattr(self._noted, "copies", 0) + 1
        values, copied = result
        view = not copied and shard is None  # JAX copies shards into one array
        if view and not self._first_reading(array):
            return
        # The first shard counts for the whole array: the program may end before the others are written.
        size = int(values.nbytes) if whole is None else 0 if shard else whole
        self._transfers.add(row, 0 if shard else 1, size, ns, began=began, view=view)

    def calling_item(self, method: Any, array: Any, frame: FrameType) -> Callable[..., Any] | None:
        """Return a callable that runs ``method``, JAX's ``array.item``, and counts the copy; None if the copy
        is not to be counted. ``frame`` is the frame that calls ``item``."""
        if self._was_read(array) or shield.busy() or array.is_deleted():
            return None
        row = self._transfers.row(frame, TO_HOST, jax_internals.ITEM)
        if row is None:
            return None
        call = EndedCall(method)
        before = getattr(self._noted, "copies", 0)
        call.ended = functools.partial(self._item_called, row, array, before, time.perf_counter_ns())
        return call

    def _item_called(self, row: Row, array: Any, before: int, began: int) -> None:
        """Count a finished call of ``array.item`` in ``row``, the totals of the source line that called it,
        as a reading without a copy. Do nothing if the memory of ``array`` was read before, or if another
        replaced method that ``item`` called has handled the copy.

        Args:
          before: the number of copies counted in this thread when the call began.
          began: when the call began, by ``time.perf_counter_ns``.
        """
        ns = time.perf_counter_ns() - began
        if getattr(self._noted, "copies", 0) == before and self._first_reading(array):
            self._transfers.add(row, 1, int(array.nbytes), ns, began=began, view=True)

    def _shard(self, frame: FrameType) -> tuple[int | None, int | None]:
        """Return (index of the shard that JAX copies at ``frame``, bytes of the whole array). The bytes are
        None if unknown. Return (None, None) if JAX copies the array as a whole.

        Raises:
          LookupError: the frame of JAX does not show the shard.
        """
        place = (id(frame.f_code), frame.f_lasti)
        if self._by_shard.get(place) is False:
            return None, None
        shard = whole = None  # JAX 0.10 copies an array on several devices shard by shard
        if jax_internals.is_frame_of(jax_internals.ValueFrame, frame):
            local = jax_internals.ValueFrame(frame)
            shard = local.i
            if shard is jax_internals.Missing.UNKNOWN:
                raise LookupError("copies of unknown shards of an array are not counted")
            whole = int(local.self.nbytes) if jax_internals.known(local.self) else None
        by_shard = isinstance(shard, int)
        self._by_shard.setdefault(place, by_shard)
        return (shard, whole) if by_shard else (None, None)

    def _was_read(self, array: Any) -> bool:
        """Return whether the program has read the memory of ``array`` before without a copy (the host uses
        the device's memory). If so, reading it again is not counted."""
        known = self._read.get(id(array))
        return known is not None and known() is array

    def _first_reading(self, array: Any) -> bool:
        """Return whether the memory of ``array`` is read for the first time without a copy. Remember that it
        was read."""
        if self._was_read(array):
            return False
        number, read = id(array), self._read
        read[number] = weakref.ref(array, lambda _: read.pop(number, None))
        return True


class _Replacement:
    """Stands in the place of one method of JAX's array class, to count the copies that the method makes.

    Attributes:
      name: the name of the method.
      method: JAX's own method.
      copies: counts the copies; None after the recording.
    """

    def __init__(self, name: str, method: Any, copies: HostCopies) -> None:
        self.name = name
        self.method = method
        self.copies: HostCopies | None = copies


class _Copy(_Replacement):
    """Replaces a method of JAX's array class that copies. Looking up the method counts as the beginning of a
    copy, because JAX only looks it up to call it."""

    def __get__(self, array: Any, owner: Any = None) -> Any:
        if array is not None and self.copies is not None:
            copying = shield.attempt("host_copies", self.copies.copying, self.method, array, sys._getframe(1))
            if copying is not None:
                return copying
        return self.method.__get__(array, owner)


class _Item(_Replacement):
    """Replaces ``item`` of JAX's array class. ``array.item`` is still a bound method; its function is a
    ``_Bound``. The copy begins only when ``item`` is called, because the program may look up ``array.item``
    without calling it."""

    def __get__(self, array: Any, owner: Any = None) -> Any:
        if array is None or self.copies is None:
            return self.method.__get__(array, owner)
        return types.MethodType(_Bound(self, array), array)


class _Bound:
    """The function of a bound ``array.item``, which counts the copy when it is called. It has the attributes
    of JAX's method and is equal to JAX's method."""

    __slots__ = ("_array", "_stand")

    def __init__(self, stand: _Replacement, array: Any) -> None:
        self._stand = stand
        self._array = array

    @property
    def __call__(self) -> Any:  # C code reads this when the object is called, and then calls the value
        stand = self._stand
        if stand.copies is not None:
            call = shield.attempt(
                "host_copies", stand.copies.calling_item, stand.method, self._array, sys._getframe(1)
            )
            if call is not None:
                return call
        return stand.method

    __module__ = property(lambda self: self._stand.method.__module__)
    __doc__ = property(lambda self: self._stand.method.__doc__)
    __wrapped__ = property(lambda self: self._stand.method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stand.method, name)

    def __eq__(self, other: object) -> bool:
        method = other._stand.method if type(other) is _Bound else other
        return bool(self._stand.method == method)

    def __hash__(self) -> int:
        return hash(self._stand.method)

    def __repr__(self) -> str:
        return repr(self._stand.method)
