"""Count copies to devices and between devices.

Copies by ``device_put`` and by functions that call it are counted from two of JAX's test events: the
beginning and the end of copying the shards of one array to their devices. A third event announces arguments
of a call that have the right sharding but are on other devices than the call needs. Arguments of a jitted
call are counted here only if its program runs on several devices; ``model.transfers`` counts the others.

``jnp.asarray`` and ``jnp.array`` of host arrays send no event. They run two primitives, whose implementation
is replaced by JAX's ``Primitive.def_impl``, and restored afterwards.
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
from jaxscope.capture import rounding, shield
from jaxscope.capture.transfers.by_line import EndedCall, Row, Transfers
from jaxscope.schema.transfers import BETWEEN, TO_DEVICE

NOTHING: tuple[int, list[Any]] = (0, [])  # stands for a copy of which nothing is counted; never changed


class DevicePuts(threading.local):
    """The copies to devices that are in progress on this thread. It handles JAX's events of these copies.

    Attributes:
      open: for each copy, outermost first: (when it began by ``time.perf_counter_ns``, [(totals of the
        program's line, bytes to add)]). For a copy that is not counted, the list in the pair is empty.
      ways_to_callbacks: functions of JAX that were seen on the stack while JAX copied the arguments of a
        callback; such copies are not counted.
    """

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self.ways_to_callbacks = transfers.ways_to_callbacks
        self.open: list[tuple[int, list[tuple[Row, int]]]] = []

    def began(self, event_frame: FrameType) -> None:
        """Handle JAX's event that it begins to copy the shards of one array to their devices. ``event_frame``
        is the frame of JAX that sends the event."""
        self.open.append(NOTHING)  # even if the code below fails: ends and beginnings must match
        frame = jax_internals.nearest_frame(event_frame, (jax_internals.DevicePutFrame.function,))
        if frame is None:
            return
        if self._transfers.for_callback(frame, event_frame):
            return
        moved = self._moved(frame)
        self.open[-1] = (time.perf_counter_ns(), moved)

    def ended(self, _: FrameType) -> None:
        """Count the copy to devices that began last on this thread and has ended now."""
        ended = time.perf_counter_ns()
        began, moved = self.open.pop() if self.open else (0, [])
        for row, size in moved:
            self._transfers.add(row, 1, size, ended - began, began=began)

    def _moved(self, frame: FrameType) -> list[tuple[Row, int]]:
        """Return [(totals of the program's line, bytes)] for one copy, which JAX's ``batched_device_put``
        makes at ``frame``: one pair for the bytes from the host, and one for those from other devices. A pair
        is missing if there are no such bytes, or if they are not counted."""
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
        """Count the arrays that JAX is about to copy to other devices with unchanged sharding. All arrays
        that go to one device count as one copy, and all that go to several devices as another.
        ``event_frame`` is the frame of JAX that sends the event. The time of these copies is unknown."""
        frame = jax_internals.nearest_frame(event_frame, (jax_internals.DeviceCopyFrame.function,))
        if frame is None:
            return
        local = jax_internals.DeviceCopyFrame(frame)
        if not jax_internals.known(local.batch_xs) or not jax_internals.known(local.batch_devs):
            return
        sizes = {False: 0, True: 0}  # to one device, to several
        for array, devices in zip(local.batch_xs, local.batch_devs, strict=False):
            if not array.is_deleted() and jax_internals.devices_in_order(array) != devices:
                sizes[len(devices) > 1] += int(array.nbytes)
        for several, size in sizes.items():
            row = self._transfers.row(frame, BETWEEN, "device_put", in_calls=several) if size else None
            if row is not None:
                self._transfers.add(row, 1, size, None)


class StagedArrays:
    """Counts the host arrays that ``jnp.asarray`` and ``jnp.array`` copy to devices, from ``install`` to
    ``remove``.

    Args:
      transfers: adds up the copies by the program's line.
      events: returns the number of JAX's events so far. If it grows during a copy, JAX also compiled the
        primitive in this time, so the time is not that of the copy.
    """

    def __init__(self, transfers: Transfers, events: Callable[[], int]) -> None:
        self._transfers = transfers
        self._events = events
        self._stands: list[tuple[Any, _Implementation]] = []

    def install(self) -> None:
        """Replace the implementation of the two primitives that ``jnp.asarray`` and ``jnp.array`` run."""
        for primitive in jax_internals.staging()[0]:
            stand = _Implementation(primitive.impl, self)
            self._stands.append((primitive, stand))
            primitive.def_impl(stand)

    def remove(self) -> None:
        """Restore JAX's implementation of the two primitives that ``jnp.asarray`` and ``jnp.array`` run,
        except where something else has replaced it meanwhile."""
        for primitive, stand in self._stands:
            stand.staged = None
            if primitive.impl is stand:
                primitive.def_impl(stand.method)
        self._stands.clear()

    def staging(self, method: Callable[..., Any], frame: FrameType) -> Callable[..., Any] | None:
        """Return a callable that runs ``method`` and counts the copy of a host array; None if there is no
        copy to count. ``method`` is JAX's implementation of a primitive that ``jnp.asarray`` runs. ``frame``
        is the frame of JAX that calls the primitive. At the first copy of a line, also check whether the
        conversion loses information."""
        size = jax_internals.staged_bytes(frame)
        if size is None or shield.busy():
            return None
        row = self._transfers.row(frame, TO_DEVICE, "jnp.asarray")
        if row is None:
            return None
        if row.count == 0:  # the first copy of this line
            shield.attempt("rounding", self._examine, row, frame)
        call = EndedCall(method)
        call.ended = functools.partial(self._ended, row, size, self._events(), time.perf_counter_ns())
        return call

    def _examine(self, row: Row, frame: FrameType) -> None:
        """Write the event ``Rounded`` if the copy at ``frame`` loses information (``rounding.lost``) because
        JAX converts the array to a smaller dtype. ``row`` has the totals of the program's line."""
        found = jax_internals.staged_source(frame)
        if found is None:
            return
        values, dtype = found
        share = rounding.lost(values, dtype)
        if share:
            self._transfers.rounded(row, values.dtype.name, dtype, share)

    def _ended(self, row: Row, size: int, events: int, began: int) -> None:
        """Add a finished copy of ``size`` bytes to ``row``, the totals of the program's line.

        Args:
          events: the number of JAX's events when the copy began. If it has grown since, the time of the copy
            counts as 0.
          began: when the copy began, by ``time.perf_counter_ns``.
        """
        ns = time.perf_counter_ns() - began if self._events() == events else 0
        self._transfers.add(row, 1, size, ns, began=began)


class _Implementation:
    """Replaces ``method``, JAX's implementation of a primitive that ``jnp.asarray`` runs, to count the
    copies. ``staged`` counts them; None: nothing is counted."""

    __slots__ = ("method", "staged")

    def __init__(self, method: Callable[..., Any], staged: StagedArrays) -> None:
        self.method = method
        self.staged: StagedArrays | None = staged

    # JAX reads this property from C and calls its value. So no frame of jaxscope is on the stack meanwhile.
    @property
    def __call__(self) -> Callable[..., Any]:
        if self.staged is None:
            return self.method
        call = shield.attempt("staged_arrays", self.staged.staging, self.method, sys._getframe(1))
        return self.method if call is None else call


def _numpy_bytes(array: Any) -> int:
    """Return the size of ``array``, a NumPy array or scalar, in bytes."""
    if isinstance(array, np.ndarray):  # a subclass of the program may override ``nbytes``
        return int(np.ndarray.nbytes.__get__(array))
    return int(array.nbytes)


def _bytes(aval: Any) -> int:
    """Return the size in bytes of an array with the aval ``aval``, to which JAX converts a Python number."""
    return int(math.prod(aval.shape) * aval.dtype.itemsize)
