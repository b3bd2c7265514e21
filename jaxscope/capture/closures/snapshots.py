"""Remember the values that one trace read besides its arguments, and find those that are another object now.

Values are kept by weak reference (plain ones by value); of the function's own closure, the cells themselves.
"""

from __future__ import annotations

import weakref
from types import FunctionType
from typing import Any

from jaxscope.capture import paths
from jaxscope.capture.closures import access_path, bytecode, dependencies, fingerprint

EAGER = 64  # checks after a trace compare all values; later ones AT_ONCE of those behind attributes or items
AT_ONCE = 8
MAX_TOTAL = 16 << 20  # bytes of NumPy contents read for one trace


class Read:
    """One value that a trace read. ``ref`` returns the object while it lives."""

    __slots__ = ("constant", "found", "mark", "ref")

    def __init__(self, found: dependencies.Found, constant: bool) -> None:
        self.found = found._replace(value=None)
        self.constant = constant  # this array is among the constants of the trace
        self.remember(found.value)

    def remember(self, value: Any) -> None:
        self.mark = fingerprint.Mark(value)
        self.ref = self.mark.ref


class Snapshot:
    """The values that one trace read and that are not arguments.

    The function's own cells and globals are compared directly, other values by their path from the function.
    A snapshot holds the cells: only an object that holds the function may hold a snapshot.
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
        self.calls = calls  # of the function, when the contents of its arrays were last compared
        self.contents_at, self._gap = calls + 1, 1  # the call after which they are compared next
        self.reported = False  # there is an event about a change
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
        """Schedule the next comparison of contents, after one at call ``calls``: intervals double."""
        self.contents_at = calls + self._gap
        self._gap *= 2

    def drop(self, read: Read) -> bool:
        """Stop checking ``read``. Return False if another thread already dropped it."""
        if self.reads.pop(read.found.place, None) is None:
            return False
        self.cells = [c for c in self.cells if c[1] is not read]
        self.names = [n for n in self.names if n[1] is not read]
        self.deep = [r for r in self.deep if r is not read]
        self.arrays = [r for r in self.arrays if r is not read]
        return True

    def differing(self) -> list[Read] | None:
        """Return the values that are another object now; of deep ones, AT_ONCE on each call once eager checks
        end."""
        differing: list[Read] | None = None
        for cell, read in self.cells:
            try:
                if cell.cell_contents is not read.ref():
                    differing = [*(differing or ()), read]
            except ValueError:  # emptied
                pass
        space = self.space
        for name, read in self.names:
            if space.get(name) is not read.ref():
                differing = [*(differing or ()), read]
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
                    differing = [*(differing or ()), read]
        return differing


def _is_one_of(value: Any, constants: set[paths.Identity]) -> bool:
    try:
        return bool(constants) and paths.identity(value) in constants
    except Exception:  # an array in a dead buffer
        return False
