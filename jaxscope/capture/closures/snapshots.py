"""Remember the values that one trace read besides its arguments, and find those whose variables have another
object now.

Values are kept by weak reference, plain ones by value. Of the function's own closure, the cells themselves
are kept.
"""

from __future__ import annotations

import weakref
from types import FunctionType
from typing import Any

from jaxscope.capture import paths
from jaxscope.capture.closures import access_path, bytecode, dependencies, fingerprint

EAGER = 64  # checks after a trace that compare all values
AT_ONCE = 8  # values reached through attributes or items that each later check compares
MAX_TOTAL = 16 << 20  # bytes of the contents of NumPy arrays that are compared for one trace


class Read:
    """One value that a trace read.

    Args:
      found: the value and where the code reads it.
      constant: whether it is among the arrays that the trace captured as constants.

    Attributes:
      found: where the code reads the value; without the value itself.
      constant: whether the trace captured it as a constant.
      mark: the remembered value.
      ref: returns the object while it is alive.
    """

    __slots__ = ("constant", "found", "mark", "ref")

    def __init__(self, found: dependencies.Found, constant: bool) -> None:
        self.found = found._replace(value=None)
        self.constant = constant
        self.remember(found.value)

    def remember(self, value: Any) -> None:
        """Compare with ``value`` from now on."""
        self.mark = fingerprint.Mark(value)
        self.ref = self.mark.ref


class Snapshot:
    """The values that one trace read and that are not arguments.

    The function's own closure cells and globals are compared directly, other values by their path from the
    function. A snapshot refers to the cells, which may refer to the function. So only an object that refers
    to the function anyway may refer to a snapshot.

    Args:
      function: the traced function.
      bound: references, by name, to arguments that stay the same from call to call.
      call: the number of the call that was traced.
      calls: the number of calls of the function so far.
      constants: identifies the arrays that the trace captured (``paths.identity``).

    Attributes:
      eager: how many more checks compare all values.
      calls: the number of calls when the contents of arrays were last compared.
      contents_at: the call after which they are compared next.
      reported: whether a change was written to the log.
      reads: all values, by their path.
      cells: those in closure cells.
      names: those in globals.
      deep: those that are reached through attributes or items.
      arrays: those that are NumPy arrays whose contents are compared.
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
        self.turn = 0  # the first of the values in ``deep`` that the next check compares
        self.calls = calls
        self.contents_at, self._gap = calls + 1, 1
        self.reported = False
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
        """Schedule the next comparison of contents after the one at the call number ``calls``. The intervals
        double."""
        self.contents_at = calls + self._gap
        self._gap *= 2

    def drop(self, read: Read) -> bool:
        """Check ``read`` no more. Return False if another thread has dropped it already."""
        if self.reads.pop(read.found.place, None) is None:
            return False
        self.cells = [c for c in self.cells if c[1] is not read]
        self.names = [n for n in self.names if n[1] is not read]
        self.deep = [r for r in self.deep if r is not read]
        self.arrays = [r for r in self.arrays if r is not read]
        return True

    def differing(self) -> list[Read] | None:
        """Return the values whose variables have another object now; None if there are none.

        After the first EAGER checks, each one compares only AT_ONCE of the values that are reached through
        attributes or items.
        """
        differing: list[Read] | None = None
        for cell, read in self.cells:
            try:
                if cell.cell_contents is not read.ref():
                    differing = [*(differing or ()), read]
            except ValueError:  # the cell has no value any more
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
    """Return whether ``value`` is one of the arrays that ``constants`` identifies."""
    try:
        return bool(constants) and paths.identity(value) in constants
    except Exception:  # an array in a dead buffer
        return False
