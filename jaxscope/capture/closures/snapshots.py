"""Remember the values that one trace read besides its arguments, and find the variables that refer to another
object now.

Numbers and short strings are kept themselves. Other values are kept by weak reference or, if they cannot have
one, by data such as their length (``fingerprint``). The closure cells of the function are kept, too, to read
the present values from them.
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
    """One value that a trace read and that is no traced argument.

    Attributes:
      found: where the code reads the value. Its field ``value`` is None, so that the value is not kept alive.
      constant: whether the value is among the arrays that the trace captured as constants.
      mark: the remembered value, with which the present one is compared.
      ref: a function that returns the object while it is alive, later None. For an object that can have no
        weak reference, such as a list, it always returns None.
    """

    __slots__ = ("constant", "found", "mark", "ref")

    def __init__(self, captured: dependencies.Found, constant: bool) -> None:
        self.found = captured._replace(value=None)
        self.constant = constant
        self.remember(captured.value)

    def remember(self, value: Any) -> None:
        """Replace the remembered value by ``value``, so that later checks compare with it."""
        self.mark = fingerprint.Mark(value)
        self.ref = self.mark.ref


class Snapshot:
    """The values that one trace read and that are no traced arguments. A snapshot may keep the function
    alive, so refer to it only from objects that refer to the function anyway.

    Args:
      bound: name -> a function that returns the value, for arguments that stay the same from call to call.
      call: the number of the call in which the trace was made.
      calls: the number of calls of the function so far.
      constants: the identities (``paths.identity``) of the arrays that the trace captured.

    Attributes:
      eager: how many more checks compare all values.
      calls: the number of calls of the function when the contents of arrays were last compared.
      contents_at: the number of the call after which the contents of arrays are compared next.
      reported: whether a change was written to the log.
      reads: path -> value (a Read), for all values.
      cells: (closure cell, value) for the values in the function's own closure cells that are compared
        directly.
      names: (name, value) for the values in the function's globals that are compared directly.
      deep: the values that are compared by their path from the function.
      arrays: the values that are NumPy arrays whose contents are compared.
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
        for found in dependencies.values_read(function, bound):
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
        """Schedule the next comparison of the contents of arrays, after a comparison at the ``calls``-th call
        of the function. The interval doubles each time."""
        self.contents_at = calls + self._gap
        self._gap *= 2

    def drop(self, read: Read) -> bool:
        """Stop checking the value ``read``. Return True; False if checking was stopped before."""
        if self.reads.pop(read.found.place, None) is None:
            return False
        self.cells = [c for c in self.cells if c[1] is not read]
        self.names = [n for n in self.names if n[1] is not read]
        self.deep = [r for r in self.deep if r is not read]
        self.arrays = [r for r in self.arrays if r is not read]
        return True

    def differing(self) -> list[Read] | None:
        """Return the values whose variables may refer to another object now; None if there are none. A value
        that cannot have a weak reference, such as a list, is always among them when it is compared.

        The first EAGER checks compare all values. Each later check compares all values in ``cells`` and
        ``names``, but only AT_ONCE of the values in ``deep``, in turn.
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
    """Return whether ``value`` is one of the arrays that ``constants`` identifies (by ``paths.identity``)."""
    try:
        return bool(constants) and paths.identity(value) in constants
    except Exception:  # an array in a dead buffer
        return False
