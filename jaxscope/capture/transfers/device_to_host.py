"""Copies of arrays to the host: the one place where methods of JAX's are replaced, and put back.

On JAX's array class stand-ins take the place of the C++ methods that copy, and of ``item``. Nothing of ours
is on the stack while JAX copies: looked up (or, ``item``, called), a stand-in notes the time and the
program's line, and returns C functions composed of JAX's own method and a note of its end. So no frame of
ours is in a traceback, and exceptions pass as they are. Looked up on the class it is the method itself.
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
from jaxscope.capture.transfers.by_line import TO_HOST, Row, Transfers


class HostCopies:
    """The stand-ins of one recording; ``install`` and ``remove`` bracket it."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._stands: list[_Stand] = []
        self._read: dict[int, weakref.ref[Any]] = {}  # arrays that were read without a copy
        self._noted = threading.local()
        self._in_parts: dict[tuple[int, int], bool] = {}  # places in JAX's own ``_value``

    def install(self) -> None:
        array = jax_internals.array_class()
        for name in (*jax_internals.COPY_METHODS, jax_internals.ITEM):
            method = array.__dict__.get(name)
            if method is not None:
                stand = (_Item if name == jax_internals.ITEM else _Copy)(name, method, self)
                self._stands.append(stand)
                setattr(array, name, stand)

    def remove(self) -> None:
        array = jax_internals.array_class()
        for stand in self._stands:
            stand.copies = None  # whoever holds it has the method
            if array.__dict__.get(stand.name) is stand:
                setattr(array, stand.name, stand.method)
        self._stands.clear()

    # -- for the stand-ins --------------------------------------------------------------------------

    def copying(self, method: Any, array: Any, frame: FrameType) -> Callable[[], Any] | None:
        """What copies ``array`` when it is called, and tells us; None: the method alone will do."""
        if self._was_read(array) or shield.busy():
            return None
        row = self._transfers.row(frame, TO_HOST, "other")
        if row is None:
            return None
        part = self._part(frame)
        ended = functools.partial(self._copied, row, array, part, time.perf_counter_ns())
        # In C from here: next() asks map() for what our note returns, which asks for what JAX's method does.
        return functools.partial(next, map(ended, map(method, (array,))))

    def _copied(self, row: Row, array: Any, part: int | None, began: int, result: Any) -> Any:
        ns = time.perf_counter_ns() - began
        shield.attempt("host_copies", self._note, row, array, part, ns, result)
        return result

    def _note(self, row: Row, array: Any, part: int | None, ns: int, result: Any) -> None:
        self._noted.copies = getattr(self._noted, "copies", 0) + 1
        values, copied = result
        view = not copied and part is None  # parts are copied into one array, at the latest by JAX
        if view and not self._first_reading(array):
            return
        self._transfers.add(row, 0 if part else 1, int(values.nbytes), ns, view=view)

    def calling_item(self, method: Any, array: Any, frame: FrameType) -> Callable[..., Any] | None:
        """The same for ``array.item``, which may ask for the array's buffer, or copy as all others do."""
        if self._was_read(array) or shield.busy() or array.is_deleted():
            return None
        row = self._transfers.row(frame, TO_HOST, jax_internals.ITEM)
        if row is None:
            return None
        call = _Call(method)
        before = getattr(self._noted, "copies", 0)
        call.ended = functools.partial(self._item_called, row, array, before, time.perf_counter_ns())
        return call

    def _item_called(self, row: Row, array: Any, before: int, began: int) -> None:
        ns = time.perf_counter_ns() - began
        if getattr(self._noted, "copies", 0) == before and self._first_reading(array):
            self._transfers.add(row, 1, int(array.nbytes), ns, view=True)

    def _part(self, frame: FrameType) -> int | None:
        """JAX 0.10 brings an array of several devices over part by part: the number of this one."""
        place = (id(frame.f_code), frame.f_lasti)
        if self._in_parts.get(place) is False:
            return None
        if not jax_internals.on_stack(jax_internals.ValueFrame, frame):
            part = None
        else:
            part = jax_internals.ValueFrame(frame).i
            if part is jax_internals.Missing.UNKNOWN:
                raise LookupError("which part of an array is copied is not known: its copies are not counted")
        in_parts = isinstance(part, int)
        self._in_parts.setdefault(place, in_parts)
        return part if isinstance(part, int) else None

    def _was_read(self, array: Any) -> bool:
        """Was it read before without a copy? Reading it again is as cheap as where JAX has kept one."""
        known = self._read.get(id(array))
        return known is not None and known() is array

    def _first_reading(self, array: Any) -> bool:
        if self._was_read(array):
            return False
        number, read = id(array), self._read
        read[number] = weakref.ref(array, lambda _: read.pop(number, None))
        return True


class _Stand:
    """Stands for ``method`` of the array class under ``name``. ``copies`` None: it is only that."""

    def __init__(self, name: str, method: Any, copies: HostCopies) -> None:
        self.name = name
        self.method = method
        self.copies: HostCopies | None = copies


class _Copy(_Stand):
    """For a method that JAX's own code calls where it looks it up."""

    def __get__(self, array: Any, owner: Any = None) -> Any:
        if array is not None and self.copies is not None:
            copying = shield.attempt("host_copies", self.copies.copying, self.method, array, sys._getframe(1))
            if copying is not None:
                return copying
        return self.method.__get__(array, owner)


class _Item(_Stand):
    """For ``item``: a bound method as before, whose function is a stand-in."""

    def __get__(self, array: Any, owner: Any = None) -> Any:
        if array is None or self.copies is None:
            return self.method.__get__(array, owner)
        return types.MethodType(_Bound(self, array), array)


class _Bound:
    """The function of a bound ``array.item``: has what the method has, and equals it for the same array."""

    __slots__ = ("_array", "_stand")

    def __init__(self, stand: _Stand, array: Any) -> None:
        self._stand = stand
        self._array = array

    @property
    def __call__(self) -> Any:  # asked for when it is called; what it gives is then called from C
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


class _Call(functools.partial[Any]):
    """A function that is called once, from C; ``ended`` is called when it is let go of, right afterwards."""

    ended: Callable[[], None]

    def __del__(self) -> None:
        shield.attempt("host_copies", self.ended)
