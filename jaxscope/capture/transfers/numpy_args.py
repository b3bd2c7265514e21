"""Count the bytes of the NumPy arguments of a watched function (``jaxscope.watch``), if its calls do not all
pass the same number of bytes.

If all calls pass the same number, no call has to be examined: the total is the bytes of one call, from its
cache key, times the number of calls (``model.transfers``). Otherwise, each call is examined. Usually the size
of one leaf of the arguments, such as an array of the batch, determines the bytes of the whole call. Then only
this leaf is examined.
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
WIDE = 8  # bytes per item of the dtypes that JAX may convert to smaller ones
MOST = 64  # different sizes, and calls that are remembered

Slot = int | str  # an argument: its position or keyword
Sign = tuple[type, int | None]  # what is known of a leaf: its type, and its bytes if it is a NumPy array
Leaves = dict[tuple[Slot, Any], Sign]  # (argument, JAX's key path in it) -> what is known of the leaf


class Arguments:
    """The bytes of the NumPy arguments that the calls of one watched function (``jaxscope.watch``) pass.

    Attributes:
      each: a function that examines the arguments of a finished call; None: finished calls are not examined.
      counts: number of bytes -> counter of the calls that passed this number of bytes. The counters are 0
        until ``each`` is set. From then on they count all calls, including the earlier ones.
    """

    def __init__(self, writer: Writer, function: str) -> None:
        from jax import tree_util

        self._tree = tree_util
        self._writer = writer
        self._function = function
        self._size: int | None = None  # bytes that each call has passed so far
        self._seen: list[tuple[Leaves, int]] = []  # (leaves, bytes) of calls that missed the fast path
        self._slots: set[Slot] = set()  # arguments that contained NumPy arrays
        # The leaf whose size determines the bytes of a call: its argument, functions that lead to it from
        # there, and the count of calls for each type and size of the leaf.
        self._indicator: tuple[Slot, list[Callable[[Any], Any]], dict[Sign, Count]] | None = None
        self._lost = False
        self.counts: dict[int, Count] = {}
        self.each: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None

    def missed(self, arguments: tuple[Any, Any], leaves: int, calls: int) -> None:
        """Examine a call that missed the fast path (the C++ cache). If its NumPy arguments have another
        number of bytes than those of the calls before, begin to count calls by number of bytes.

        Counting stops for good if the arguments are unknown, if they have another number of NumPy arrays than
        ``leaves``, or if the first call that is examined is not the first call of the function.

        Args:
          arguments: (positional arguments, keyword arguments) of the call; one of them may be None (unknown).
          leaves: the number of NumPy arrays in the cache key of the call.
          calls: the number of calls so far, including this one; 0 if jit wraps the watched function, and then
            nothing is examined.
        """
        args, kwargs = arguments
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
            self._count(self._size).grow(calls - 1)
            self._count(size).add()
            self.each = self._look

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count a finished call with the arguments ``args`` and ``kwargs`` by the bytes of its NumPy
        arguments."""
        try:
            if self._indicator is not None:
                slot, path, counts = self._indicator
                try:
                    leaf = args[slot] if type(slot) is int else kwargs[slot]  # type: ignore[index]
                    for get in path:
                        leaf = get(leaf)
                    counts[type(leaf), leaf.nbytes if isinstance(leaf, NUMPY) else None].add()
                    return
                except Exception:  # the leaf is not in this call, or its size is new
                    pass
            if not self._lost:
                given = _slots(args, kwargs)
                self._count(self._read({s: given[s] for s in self._slots if s in given})[1]).add()
        except Exception as e:
            self._lose()
            shield.switch_off("numpy_arguments", f"{type(e).__name__}: {str(e)[:300]}")

    def _find_indicator(self) -> tuple[Slot, list[Callable[[Any], Any]], dict[Sign, Count]] | None:
        """Find a leaf of the arguments whose type and size determined, in all examined calls that have this
        leaf, how many bytes the call passed.

        Return (the position or keyword of the argument with the leaf, functions that lead from this argument
        to the leaf, a dict: type and size of the leaf -> counter of the calls); None if there is no such
        leaf.
        """
        for place in self._seen[-1][0]:
            sizes: dict[Sign, int] = {}
            path = _getters(place[1])
            known = [(leaves[place], size) for leaves, size in self._seen if place in leaves]
            if path is not None and all(sizes.setdefault(sign, size) == size for sign, size in known):
                return place[0], path, {sign: self._count(size) for sign, size in sizes.items()}
        return None

    def _read(self, arguments: dict[Slot, Any]) -> tuple[Leaves, int]:
        """Return (the pytree leaves of ``arguments``, the bytes of the NumPy arrays among them). The bytes
        are counted after JAX's conversion to smaller dtypes, such as float64 to float32."""
        leaves, size = {}, 0
        for slot, value in arguments.items():
            for path, leaf in self._tree.tree_flatten_with_path(value)[0]:
                numpy = isinstance(leaf, NUMPY)
                leaves[slot, path] = type(leaf), leaf.nbytes if numpy else None
                size += _bytes(leaf) if numpy else 0
        return leaves, size

    def _count(self, size: int) -> Count:
        """Return the counter of the calls that passed ``size`` bytes of NumPy arrays; create it if missing.

        Raises:
          ValueError: there are more than MOST different sizes.
        """
        count = self.counts.get(size)
        if count is None:
            if len(self.counts) >= MOST:
                raise ValueError("too many different sizes of arguments")
            count = self.counts[size] = Count(
                self._writer, lambda n, cell: Brought(function=self._function, bytes=size, count=n, cell=cell)
            )
        return count

    def _lose(self) -> None:
        """Stop counting, and log that the bytes of the function's NumPy arguments are unknown."""
        if not self._lost:
            self._lost, self._indicator = True, None
            self._writer.emit(Brought(function=self._function, lost=True))


def _slots(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Slot, Any]:
    """Return ``args`` and ``kwargs``, the arguments of a call, as one dict: position or keyword -> value."""
    slots: dict[Slot, Any] = dict(enumerate(args))
    slots.update(kwargs)
    return slots


def _is_numpy(sign: Sign) -> bool:
    """Return whether a leaf of the arguments is a NumPy array. ``sign`` is (the type of the leaf, its bytes
    or None)."""
    return issubclass(sign[0], NUMPY)


def _bytes(leaf: Any) -> int:
    """Return the bytes that ``leaf``, a NumPy array, has as a jax.Array. They are half as many for a dtype
    such as float64, if JAX's 64-bit types are disabled."""
    from jax import dtypes

    if leaf.itemsize < WIDE:
        return int(leaf.nbytes)
    return int(leaf.size) * int(dtypes.canonicalize_dtype(leaf.dtype).itemsize)


def _getters(path: Iterable[Any]) -> list[Callable[[Any], Any]] | None:
    """Return functions that lead from an argument to its leaf at JAX's key path ``path``. The first function
    takes the argument, each further one takes the result of the function before it. Return None if an entry
    of the path is no dict key, sequence index or attribute."""
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
