"""Count the bytes of NumPy arguments of a watched function, where its calls do not all pass the same number
of bytes.

Where they do, no call is examined: the bytes of one call, from its key, times the number of calls is the
total (``model.transfers``). Where they do not, one leaf (usually of the batch) is found whose size determines
the bytes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jaxscope.capture import shield
from jaxscope.capture.count import Count
from jaxscope.log.writer import Writer
from jaxscope.schema.events import Brought

NUMPY = (np.ndarray, np.generic)
WIDE = 8  # bytes per item, which JAX may halve
MOST = 64  # different sizes; calls remembered

Slot = int | str  # an argument by its position or keyword
Sign = tuple[type, int | None]  # of a leaf: its type, and its bytes where it is NumPy's
Leaves = dict[tuple[Slot, Any], Sign]  # by slot and JAX's key path in it


class Arguments:
    """The bytes of NumPy arguments that the calls of one watched function pass.

    Attributes:
      each: a function that examines the arguments of a finished call; None: so far, all calls passed the
        same number of bytes.
      counts: number of calls by the bytes of one call, counted from the time at which ``each`` was set.
    """

    def __init__(self, writer: Writer, function: str) -> None:
        from jax import tree_util

        self._tree = tree_util
        self._writer = writer
        self._function = function
        self._size: int | None = None  # bytes that each call so far passed
        self._seen: list[tuple[Leaves, int]] = []  # calls that left the fast path, and their bytes
        self._slots: set[Slot] = set()  # arguments that contained NumPy arrays
        self._indicator: tuple[Slot, list[Callable[[Any], Any]], dict[Sign, Count]] | None = None
        self._lost = False
        self.counts: dict[int, Count] = {}
        self.each: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None

    def missed(self, given: tuple[Any, Any], leaves: int, calls: int) -> None:
        """Handle a call that left the fast path.

        Args:
          given: the arguments and keywords of the call.
          leaves: number of NumPy arrays in the key of the call.
          calls: number of calls so far, including this one; 0 if jit wraps the watched function.
        """
        args, kwargs = given
        if self._lost or calls == 0:
            return
        if args is None or kwargs is None:
            self._lose()
            return
        values, size = self._read(_slots(args, kwargs))
        if sum(_is_numpy(sign) for sign in values.values()) != leaves or (self._size is None and calls > 1):
            self._lose()  # a static NumPy array, or a trace from before the recording
            return
        self._slots |= {slot for (slot, _), sign in values.items() if _is_numpy(sign)}
        if len(self._seen) < MOST:
            self._seen.append((values, size))
        self._indicator = self._find_indicator() if len(self._seen) < MOST else None
        if self._size is None:
            self._size = size
        elif self.each is None and size != self._size:
            self._of(self._size).grow(calls - 1)
            self._of(size).add()
            self.each = self._look

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            if self._indicator is not None:
                slot, path, counts = self._indicator
                try:
                    leaf = args[slot] if type(slot) is int else kwargs[slot]  # type: ignore[index]
                    for get in path:
                        leaf = get(leaf)
                    counts[type(leaf), leaf.nbytes if isinstance(leaf, NUMPY) else None].add()
                    return
                except Exception:  # not in this call, or of a size not seen before
                    pass
            if not self._lost:
                given = _slots(args, kwargs)
                self._of(self._read({s: given[s] for s in self._slots if s in given})[1]).add()
        except Exception as e:
            self._lose()
            shield.switch_off("numpy_arguments", f"{type(e).__name__}: {str(e)[:300]}")

    def _find_indicator(self) -> tuple[Slot, list[Callable[[Any], Any]], dict[Sign, Count]] | None:
        """Return a leaf whose type and size determined the bytes of all calls so far."""
        for place in self._seen[-1][0]:
            sizes: dict[Sign, int] = {}
            path = _getters(place[1])
            known = [(leaves[place], size) for leaves, size in self._seen if place in leaves]
            if path is not None and all(sizes.setdefault(sign, size) == size for sign, size in known):
                return place[0], path, {sign: self._of(size) for sign, size in sizes.items()}
        return None

    def _read(self, given: dict[Slot, Any]) -> tuple[Leaves, int]:
        """Return all leaves, and the bytes that JAX makes of the NumPy arrays among them."""
        leaves, size = {}, 0
        for slot, value in given.items():
            for path, leaf in self._tree.tree_flatten_with_path(value)[0]:
                numpy = isinstance(leaf, NUMPY)
                leaves[slot, path] = type(leaf), leaf.nbytes if numpy else None
                size += _bytes(leaf) if numpy else 0
        return leaves, size

    def _of(self, size: int) -> Count:
        count = self.counts.get(size)
        if count is None:
            if len(self.counts) >= MOST:
                raise ValueError("too many different sizes of arguments")
            count = self.counts[size] = Count(self._writer, lambda n, cell: self._event(size, n, cell))
        return count

    def _event(self, size: int, count: int, cell: int | None) -> Brought:
        return Brought(function=self._function, bytes=size, count=count, cell=cell)

    def _lose(self) -> None:
        if not self._lost:
            self._lost, self._indicator = True, None
            self._writer.emit(Brought(function=self._function, lost=True))


def _slots(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Slot, Any]:
    slots: dict[Slot, Any] = dict(enumerate(args))
    slots.update(kwargs)
    return slots


def _is_numpy(sign: Sign) -> bool:
    return issubclass(sign[0], NUMPY)


def _bytes(leaf: Any) -> int:
    """Return the bytes as a jax.Array: half of a 64-bit array's where JAX has 64 bits disabled."""
    from jax import dtypes

    if leaf.itemsize < WIDE:
        return int(leaf.nbytes)
    return int(leaf.size) * int(dtypes.canonicalize_dtype(leaf.dtype).itemsize)


def _getters(path: Iterable[Any]) -> list[Callable[[Any], Any]] | None:
    """Return functions that lead to the leaf at JAX's key path; None where an entry has no such function."""
    from jax import tree_util as tree

    getters: list[Callable[[Any], Any]] = []
    for key in path:
        if isinstance(key, tree.DictKey):
            getters.append(operator.itemgetter(key.key))
        elif isinstance(key, tree.SequenceKey):
            getters.append(operator.itemgetter(key.idx))
        elif isinstance(key, tree.GetAttrKey):
            getters.append(operator.attrgetter(key.name))
        else:
            return None
    return getters
