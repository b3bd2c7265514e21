"""Count copies to devices and between devices.

``device_put`` and functions that call it are counted from two of JAX's test events, the beginning and the end
of copying the shards of one array to their devices. A third event announces arguments of a call that are on
other devices than the call needs, with the right sharding. NumPy arguments of jitted calls are seen here only
if the call misses the fast path; ``model.transfers`` counts the others.

``jnp.asarray`` and ``jnp.array`` of host arrays send no event. The implementation of the two primitives that
they run is replaced, by JAX's ``Primitive.def_impl``, and restored afterwards.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from jaxscope import jax_internals
from jaxscope.capture import shield
from jaxscope.capture.transfers.by_line import BETWEEN, TO_DEVICE, EndedCall, Row, Transfers

NOTHING: tuple[int, list[Any]] = (0, [])  # stands for a copy of which nothing is counted; never changed


class DevicePuts(threading.local):
    """The copies to devices in progress on this thread.

    Attributes:
      open: for each copy, outermost first: when it began (``time.perf_counter_ns``), and its bytes by row.
        Copies for callbacks are left out where no other is in progress.
    """

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self.open: list[tuple[int, list[tuple[Row, int]]]] = []

    def is_for_callback(self, frame: FrameType) -> bool:
        """Return whether JAX copies a value for a callback, which is not counted, if this is recognized at
        once. If False, ``began`` must be called.

        Args:
          frame: the frame of JAX that announces the copy.
        """
        for way in self._transfers.ways_to_callbacks:
            f: FrameType | None = frame
            for code in way:
                if f is None or f.f_code is not code:
                    break
                f = f.f_back
            else:
                return True
        return False

    def began(self, event_frame: FrameType) -> None:
        """Note that JAX begins to copy the shards of one array to their devices."""
        frame = jax_internals.nearest_frame(event_frame, (jax_internals.DevicePutFrame.function,))
        if frame is None:
            return
        self.open.append(NOTHING)  # even if the code below fails: ends and beginnings must match
        if self._transfers.for_callback(frame, event_frame):
            return
        moved = self._moved(frame)
        self.open[-1] = (time.perf_counter_ns(), moved)

    def ended(self, _: FrameType) -> None:
        """Count the copy that began last, which has ended."""
        ended = time.perf_counter_ns()
        began, moved = self.open.pop() if self.open else (0, [])
        for row, size in moved:
            self._transfers.add(row, 1, size, ended - began, began=began)

    def _moved(self, frame: FrameType) -> list[tuple[Row, int]]:
        """Return [(totals of the program's line, bytes)] for what a copy moves from the host and from other
        devices. ``frame`` is that of JAX's ``batched_device_put``."""
        local = jax_internals.DevicePutFrame(frame)
        if not jax_internals.known(local.xs) or not jax_internals.known(local.devices):
            return []
        sent = between = 0
        for part, device in zip(local.xs, local.devices, strict=False):
            if isinstance(part, (np.ndarray, np.generic)):
                sent += _numpy_bytes(part)
            elif isinstance(part, jax_internals.array_class()):
                if part.is_deleted():
                    return []  # JAX will raise an error instead of copying
                between += 0 if part.devices() == {device} else int(part.nbytes)
            else:
                if not jax_internals.known(local.aval):
                    return []
                sent += _bytes(local.aval)
        several = len(local.devices) > 1
        moved = []
        for size, direction in ((sent, TO_DEVICE), (between, BETWEEN)):
            row = self._transfers.row(frame, direction, "device_put", in_calls=several) if size else None
            if row is not None:
                moved.append((row, size))
        return moved

    def copied(self, event_frame: FrameType) -> None:
        """Count the arrays that JAX is about to copy to other devices with the same sharding."""
        frame = jax_internals.nearest_frame(event_frame, (jax_internals.DeviceCopyFrame.function,))
        if frame is None:
            return
        local = jax_internals.DeviceCopyFrame(frame)
        if not jax_internals.known(local.batch_xs) or not jax_internals.known(local.batch_devs):
            return
        sizes = {False: 0, True: 0}  # to one device, to several
        for array, devices in zip(local.batch_xs, local.batch_devs, strict=False):
            if not array.is_deleted() and not jax_internals.is_on(array, devices):
                sizes[len(devices) > 1] += int(array.nbytes)
        for several, size in sizes.items():
            row = self._transfers.row(frame, BETWEEN, "device_put", in_calls=several) if size else None
            if row is not None:
                self._transfers.add(row, 1, size, None)


class StagedArrays:
    """Counts the host arrays that ``jnp.asarray`` and ``jnp.array`` copy, between ``install`` and ``remove``.

    Args:
      transfers: the totals by line, to which the copies are added.
      events: returns the number of JAX's events so far. If this number grows during a copy, JAX compiled the
        primitive first, so the time is not that of a copy.
    """

    def __init__(self, transfers: Transfers, events: Callable[[], int]) -> None:
        self._transfers = transfers
        self._events = events
        self._stands: list[tuple[Any, _Implementation]] = []

    def install(self) -> None:
        """Replace the implementation of the two primitives."""
        for primitive in jax_internals.staging()[0]:
            stand = _Implementation(primitive.impl, self)
            self._stands.append((primitive, stand))
            primitive.def_impl(stand)

    def remove(self) -> None:
        """Restore the implementation of the two primitives."""
        for primitive, stand in self._stands:
            stand.staged = None
            if primitive.impl is stand:
                primitive.def_impl(stand.method)
        self._stands.clear()

    def staging(self, method: Callable[..., Any], frame: FrameType) -> Callable[..., Any] | None:
        """Return a callable that runs ``method``, a primitive's implementation, for ``frame`` and counts the
        copy; None if there is no copy to count."""
        size = jax_internals.staged_bytes(frame)
        if size is None or shield.busy():
            return None
        row = self._transfers.row(frame, TO_DEVICE, "jnp.asarray")
        if row is None:
            return None
        call = EndedCall(method)
        call.ended = functools.partial(self._ended, row, size, self._events(), time.perf_counter_ns())
        return call

    def _ended(self, row: Row, size: int, events: int, began: int) -> None:
        """Add a copy that has ended to ``row``, the totals of a line. ``events`` is the number of JAX's
        events at its beginning."""
        ns = time.perf_counter_ns() - began if self._events() == events else 0
        self._transfers.add(row, 1, size, ns, began=began)


class _Implementation:
    """Replaces ``method``, the implementation of a primitive.

    JAX reads ``__call__``, a property, and calls its value from C. So no frame of jaxscope is on the stack
    while JAX copies.

    Attributes:
      staged: counts the copies; None after the recording.
    """

    __slots__ = ("method", "staged")

    def __init__(self, method: Callable[..., Any], staged: StagedArrays) -> None:
        self.method = method
        self.staged: StagedArrays | None = staged

    @property
    def __call__(self) -> Callable[..., Any]:
        if self.staged is None:
            return self.method
        call = shield.attempt("staged_arrays", self.staged.staging, self.method, sys._getframe(1))
        return self.method if call is None else call


def _numpy_bytes(part: Any) -> int:
    """Return the size of a NumPy array in bytes as NumPy itself computes it, because a subclass may override
    ``nbytes``."""
    if isinstance(part, np.ndarray):
        return int(np.ndarray.nbytes.__get__(part))
    return int(part.nbytes)


def _bytes(aval: Any) -> int:
    """Return the size in bytes of an array with this aval, which JAX makes of a Python number."""
    return int(math.prod(aval.shape) * aval.dtype.itemsize)
