"""Count copies to devices and between devices from JAX's events: ``device_put`` and functions that call it.

JAX's test slot receives the beginning and the end of putting the shards of one array on their devices.
Arguments of a call that have the right sharding on other devices are announced once, when they are collected.
NumPy arguments of jitted calls appear here only off the fast path: ``model.transfers`` counts them.
"""

from __future__ import annotations

import math
import threading
import time
from types import FrameType
from typing import Any

import numpy as np

from jaxscope import jax_internals
from jaxscope.capture.transfers.by_line import BETWEEN, TO_DEVICE, Row, Transfers

_FRAMES = (jax_internals.DevicePutFrame.function, jax_internals.DeviceCopyFrame.function)


class DevicePuts(threading.local):
    """The copies to devices in progress on this thread, outermost first."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._open: list[tuple[int, list[tuple[Row, int]]]] = []

    def on_event(self, name: str, event_frame: FrameType) -> None:
        """Handle JAX's event ``name``, one of PUT_EVENTS."""
        if name == jax_internals.EVENT_PUT_DONE:
            self.ended()
        elif (frame := jax_internals.up(event_frame, _FRAMES)) is not None:
            (self.began if name == jax_internals.EVENT_PUT else self.copied)(frame)

    def began(self, frame: FrameType) -> None:
        """Note that JAX's ``frame`` begins to put the shards of one array on their devices."""
        self._open.append((0, []))  # even if the code below fails: ends and beginnings must match
        if self._transfers.for_callback(frame):
            return
        moved = self._moved(frame)
        self._open[-1] = (time.perf_counter_ns(), moved)

    def over(self) -> bool:
        """End the copy that began last if nothing of it counts; return False if ``ended`` must be called."""
        if not self._open or self._open[-1][1]:
            return False
        self._open.pop()
        return True

    def ended(self) -> None:
        """Count the copy that began last: it is over."""
        ended = time.perf_counter_ns()
        began, moved = self._open.pop() if self._open else (0, [])
        for row, size in moved:
            self._transfers.add(row, 1, size, ended - began)

    def _moved(self, frame: FrameType) -> list[tuple[Row, int]]:
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

    def copied(self, frame: FrameType) -> None:
        """Count the arrays that JAX's ``frame`` is about to copy to other devices with the same sharding."""
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


def _numpy_bytes(part: Any) -> int:
    """Return the size as NumPy itself computes it: a subclass may override ``nbytes``."""
    if isinstance(part, np.ndarray):
        return int(np.ndarray.nbytes.__get__(part))
    return int(part.nbytes)


def _bytes(aval: Any) -> int:
    """Return the size of a Python number that becomes ``aval``."""
    return int(math.prod(aval.shape) * aval.dtype.itemsize)
