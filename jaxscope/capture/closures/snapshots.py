"""What one trace took in from outside, and which of it is not the object it was.

Weak references and plain values; of the function's own cells the cells themselves.
"""

from __future__ import annotations

import weakref
from types import FunctionType
from typing import Any

from jaxscope.capture import paths
from jaxscope.capture.closures import access_path, bytecode, dependencies, fingerprint

EAGER = 64  # looks after a trace at everything; then AT_ONCE of what lies deeper
AT_ONCE = 8
MAX_TOTAL = 16 << 20  # bytes of NumPy contents read for one trace


class Read:
    """One thing a trace read: where it lies and what it was. ``ref`` gives the object while it lives."""

    __slots__ = ("constant", "found", "mark", "ref")

    def __init__(self, found: dependencies.Found, constant: bool) -> None:
        self.found = found._replace(value=None)
        self.constant = constant  # the very array is among the constants of the trace
        self.remember(found.value)

    def remember(self, value: Any) -> None:
        self.mark = fingerprint.Mark(value)
        self.ref = self.mark.ref


class Snapshot:
    """What one trace took in.

    Cells and globals of the function itself are looked at directly; what lies deeper is looked up. Cells are
    held, which is why a snapshot may be held by what holds the function, and by nothing else.
    """

    def __init__(
        self,
        function: FunctionType,
        bound: dict[str, Any],
        call: int,
        calls: int,
        constants: set[paths.Identity],
    ) -> None:
        self.call = call
        self.function = weakref.ref(function)
        self.space = function.__globals__
        self.bound = bound
        self.eager = EAGER
        self.turn = 0
        self.calls = calls  # of the function, when its arrays were last looked at
        self.contents_at, self._gap = calls + 1, 1  # the call after which they are looked at next
        self.told = False  # is there an event about it?
        self.reads: dict[access_path.Place, Read] = {}
        self.cells: list[tuple[Any, Read]] = []
        self.names: list[tuple[str, Read]] = []
        self.deep: list[Read] = []
        self.arrays: list[Read] = []
        left = MAX_TOTAL
        for found in dependencies.walk(function, bound):
            read = Read(found, _is_one_of(found.value, constants))
            self.reads[found.place] = read
            (how, key), *deeper = found.place
            if not deeper and read.mark.watched and how == bytecode.CLOSURE:
                self.cells.append(((function.__closure__ or ())[key], read))
            elif not deeper and read.mark.watched and how == bytecode.GLOBAL:
                self.names.append((key, read))
            elif deeper or how != bytecode.PARAMETER:
                self.deep.append(read)
            if read.mark.crc is not None:
                left -= found.value.nbytes
                if left >= 0:
                    self.arrays.append(read)

    def contents_later(self, calls: int) -> None:
        """The arrays have been looked at after call ``calls``: next time later than last time."""
        self.contents_at = calls + self._gap
        self._gap *= 2

    def drop(self, read: Read) -> bool:
        """Look at ``read`` no more. False: another thread has dropped it already."""
        if self.reads.pop(read.found.place, None) is None:
            return False
        self.cells = [c for c in self.cells if c[1] is not read]
        self.names = [n for n in self.names if n[1] is not read]
        self.deep = [r for r in self.deep if r is not read]
        self.arrays = [r for r in self.arrays if r is not read]
        return True

    def differing(self) -> list[Read] | None:
        """What is not the object it was; of what lies deeper, on later calls, one after the other."""
        found: list[Read] | None = None
        for cell, read in self.cells:
            try:
                if cell.cell_contents is not read.ref():
                    found = [*(found or ()), read]
            except ValueError:  # emptied
                pass
        space = self.space
        for name, read in self.names:
            if space.get(name) is not read.ref():
                found = [*(found or ()), read]
        deep = self.deep
        if deep:
            if self.eager <= 0:
                self.turn = turn = self.turn if self.turn < len(deep) else 0
                self.turn += AT_ONCE
                deep = deep[turn : turn + AT_ONCE]
            function = self.function()
            for read in deep:
                if function is None:
                    break
                value = access_path.resolve(function, self.bound, read.found.place)
                if value is not read.ref() or not read.mark.watched:
                    found = [*(found or ()), read]
        return found


def _is_one_of(value: Any, constants: set[paths.Identity]) -> bool:
    try:
        return bool(constants) and paths.identity(value) in constants
    except Exception:  # an array in a dead buffer
        return False
